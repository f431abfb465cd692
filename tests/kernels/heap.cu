// Memory that kernels allocate, and C++ in kernels: virtual functions, a list of objects, and lambdas.

// Every thread allocates `count` numbers, fills them, adds up those of the next thread, and frees its own. One block of
// at most 64 threads.
extern "C" __global__ void heap_neighbours(unsigned count, unsigned* out)
{
    __shared__ unsigned* places[64];
    unsigned t = threadIdx.x;
    unsigned* own = (unsigned*)malloc(count * sizeof(unsigned));
    places[t] = own;
    if (own)
        for (unsigned i = 0; i < count; i++)
            own[i] = t * 1000 + i;
    __syncthreads();
    unsigned* next = places[(t + 1) % blockDim.x];
    unsigned sum = 0;
    if (next)
        for (unsigned i = 0; i < count; i++)
            sum += next[i];
    __syncthreads();
    free(own);
    out[t] = sum;
}

// Allocations live until they are freed, even across launches: `heap_keep` allocates and stores the addresses, and
// `heap_release` reads and frees the memory.
extern "C" __global__ void heap_keep(unsigned long long** places, unsigned long long seed)
{
    unsigned long long* p = (unsigned long long*)malloc(16);
    p[0] = seed + threadIdx.x;
    p[1] = ~p[0];
    places[threadIdx.x] = p;
}

extern "C" __global__ void heap_release(unsigned long long** places, unsigned long long* out)
{
    unsigned long long* p = places[threadIdx.x];
    out[threadIdx.x] = p[0] ^ p[1] ^ p[0];
    free(p);
    places[threadIdx.x] = 0;
}

// Failed allocations return null pointers, which may be freed. out: 1 if an allocation that is too large fails, and 1
// if memory is aligned to 16 bytes.
extern "C" __global__ void heap_limits(unsigned* out)
{
    void* much = malloc((size_t)1 << 40);
    out[0] = much == 0;
    free(much);
    free(0);
    void* aligned = malloc(24);
    out[1] = aligned != 0 && ((size_t)aligned & 15) == 0;
    free(aligned);
}

// Repeated allocation does not run out of memory as long as all memory is freed.
extern "C" __global__ void heap_again(unsigned rounds, unsigned* out)
{
    unsigned sum = 0;
    for (unsigned r = 0; r < rounds; r++) {
        unsigned* p = (unsigned*)malloc(65536);
        if (!p)
            break;
        p[r & 1023] = r;
        sum += p[r & 1023] + 1;
        free(p);
    }
    *out = sum;
}

struct Shape {
    int id;
    __device__ Shape(int id) : id(id) {}
    __device__ virtual ~Shape() {}
    __device__ virtual int area(int scale) const { return -scale; }
    __device__ virtual int corners() const { return 0; }
};
struct Square : Shape {
    int side;
    __device__ Square(int id, int side) : Shape(id), side(side) {}
    __device__ int area(int scale) const override { return side * side * scale; }
    __device__ int corners() const override { return 4; }
};
struct Cut : Square {
    __device__ Cut(int id, int side) : Square(id, side) {}
    __device__ int area(int scale) const override { return Square::area(scale) - id; }
};

// Virtual functions: the class of each object depends on the data. out[t] = area + corners.
extern "C" __global__ void virtual_calls(const int* in, int* out)
{
    unsigned t = threadIdx.x;
    int x = in[t];
    Shape* shape = x % 3 == 0 ? new Shape(x) : x % 3 == 1 ? new Square(x, x + 1) : new Cut(x, x + 2);
    out[t] = shape->area(3) + shape->corners();
    delete shape;
}

// A list that the threads of a block build together, newest first, and that one thread walks: out = count and sum.
struct Node {
    Node* next;
    unsigned value;
};

extern "C" __global__ void linked_list(const unsigned* in, unsigned* out)
{
    __shared__ unsigned long long head;
    unsigned t = threadIdx.x;
    if (t == 0)
        head = 0;
    __syncthreads();
    Node* node = new Node;
    node->value = in[t];
    unsigned long long seen = *(volatile unsigned long long*)&head, held;
    do {
        held = seen;
        node->next = (Node*)held;
        seen = atomicCAS(&head, held, (unsigned long long)node);
    } while (seen != held);
    __threadfence_block();
    __syncthreads();
    if (t == 0) {
        unsigned count = 0, sum = 0;
        for (Node* p = (Node*)head; p;) {
            Node* next = p->next;
            count++;
            sum += p->value;
            delete p;
            p = next;
        }
        out[0] = count;
        out[1] = sum;
    }
}

// Functions as values: a template over a capturing lambda.
template <typename F> __device__ __noinline__ int fold(F f, int n)
{
    int r = 1;
    for (int i = 0; i < n; i++)
        r = f(r, i);
    return r;
}

extern "C" __global__ void lambdas(const int* in, int* out)
{
    unsigned t = threadIdx.x;
    int k = in[t];
    int sum = fold([k](int r, int i) { return r + i * k; }, 9);
    int mix = fold([&](int r, int i) { return (r ^ (k >> (i & 7))) * 3; }, 5);
    out[t] = sum ^ mix;
}
