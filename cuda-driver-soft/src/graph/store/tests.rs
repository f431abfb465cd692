//! Tests of the table of graphs: clones that fail, and conditional handles.

use super::*;

#[test]
fn a_failed_clone_leaves_nothing() {
    const DEAD: usize = 1;
    let object = user_object::create(Arc::new(|| ()), 1).unwrap();
    let mut store = GraphStore::default();
    let graphs = [(); 3].map(|()| store.create());
    store.graph_mut(graphs[0]).unwrap().objects.insert(object, 1);
    for child in &graphs[1..] {
        store.add_owned(graphs[0], Vec::new(), *child).unwrap();
    }
    // The second child graph has a reference to an object that does not exist, so the clone cannot add one.
    store.graph_mut(graphs[2]).unwrap().objects.insert(DEAD, 1);
    let sizes = |store: &GraphStore| (store.graphs.len(), store.nodes.len());
    let before = sizes(&store);
    assert!(store.clone_graph(graphs[0]).is_err());
    assert_eq!(sizes(&store), before);
    // The object has its first reference only.
    user_object::release(object, 1, &[]).unwrap();
    assert!(user_object::check(object).is_err());
}

#[test]
fn a_handle_is_free_after_its_node_in_a_body_is_destroyed() {
    const CONTEXT: usize = 1;
    let mut store = GraphStore::default();
    let graph = store.create();
    let handles = [(); 2].map(|()| store.add_handle(graph, ConditionalHandle::new(None, CONTEXT)).unwrap());
    let params = |number| (number, CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 1);
    let (node, outer) = store
        .add_conditional(graph, Vec::new(), params(handles[0]), CONTEXT)
        .unwrap();
    let inside = store.add_conditional(outer.bodies[0], Vec::new(), params(handles[1]), CONTEXT);
    assert!(inside.is_ok());
    drop(store.destroy_node(node).unwrap());
    for number in handles {
        assert!(
            store
                .add_conditional(graph, Vec::new(), params(number), CONTEXT)
                .is_ok()
        );
    }
}
