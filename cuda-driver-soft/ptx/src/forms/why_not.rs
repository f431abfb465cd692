//! Error messages for opcodes that have no form in the table.

use super::mods::{is_known, type_of};
use super::table::{CompiledRow, fit};

/// Returns messages, in ptxas's words, that say which modifiers are missing, unknown or not allowed.
pub(super) fn why_not(name: &str, rows: &[CompiledRow], modifiers: &[&str]) -> Vec<String> {
    let unknown = modifiers.iter().filter(|modifier| !is_known(modifier));
    let mut messages: Vec<String> = unknown.map(|m| format!("Unknown modifier '{m}'")).collect();
    let fits = |modifiers: &[&str]| rows.iter().any(|row| fit(&row.elements, modifiers));
    let with_all = |more: &[&'static str]| {
        let mut all = modifiers.to_vec();
        // Other modifiers are written before the types.
        let at = all.iter().position(|m| type_of(m).is_some()).unwrap_or(all.len());
        all.splice(at..at, more.iter().copied());
        fits(&all)
    };
    let with = |more: &'static str| with_all(&[more]);
    // Leaving out each modifier in turn takes quadratic time. Opcodes that have at least two modifiers more than any
    // row fit no row that way.
    let most = rows.iter().map(|row| row.elements.len()).max().unwrap_or(0);
    let left_out = if modifiers.len() > most + 1 { 0 } else { modifiers.len() };
    let without = |i: usize| {
        let mut fewer = modifiers.to_vec();
        fewer.remove(i);
        fits(&fewer)
    };
    if !messages.is_empty() {
        let known: Vec<&str> = modifiers
            .iter()
            .copied()
            .filter(|modifier| is_known(modifier))
            .collect();
        if fits(&known) {
            return messages;
        }
        let at = known.iter().position(|m| type_of(m).is_some());
        let mut compared = known;
        compared.insert(at.unwrap_or(compared.len()), ".eq");
        if fits(&compared) {
            let message = format!("Comparison modifier required for instruction '{name}'");
            messages.push(message);
            return messages;
        }
    }
    if messages.is_empty() {
        let rounds = with(".rn") || with(".rzi");
        let error = match (rounds, with(".approx")) {
            (true, true) => Some("Rounding modifier or '.approx' modifier required"),
            (true, false) => Some("Rounding modifier required"),
            (false, true) => Some(".approx modifier required"),
            (false, false) => None,
        };
        if let Some(error) = error {
            return vec![format!("{error} for instruction '{name}'")];
        }
        let absent: [&[&str]; 3] = [&[".sync"], &[".aligned"], &[".sync", ".aligned"]];
        if let Some(absent) = absent.into_iter().find(|absent| with_all(absent)) {
            let message = |modifier: &&str| format!("{modifier} modifier required for instruction '{name}'");
            return absent.iter().map(message).collect();
        }
        if with(".eq") {
            return vec![format!("Comparison modifier required for instruction '{name}'")];
        }
        let in_a_row = |modifier: &&str| {
            let mut elements = rows.iter().flat_map(|row| &row.elements);
            elements.any(|element| element.alternatives.contains(modifier))
        };
        if let Some(i) = (0..left_out).find(|&i| type_of(modifiers[i]).is_none() && without(i)) {
            let modifier = modifiers[i];
            let rounding = [".rn", ".rz", ".rm", ".rp", ".rni", ".rzi", ".rmi", ".rpi"].contains(&modifier);
            let is_priority = |modifier: &&&str| modifier.starts_with(".L2::evict_");
            let second = modifiers.iter().filter(is_priority).nth(1);
            let second = second.filter(|_| is_priority(&&modifier));
            return vec![if rounding {
                format!("Illegal rounding modifier for instruction '{name}'")
            } else if let ("createpolicy", Some(second)) = (name.split('.').next().unwrap_or_default(), second) {
                let second = second.trim_start_matches(".L2::");
                format!("Unsupported modifier '.{second}' as secondary_priority for instruction '{name}'")
            } else if matches!(name, "ld" | "st") && is_priority(&&modifier) && in_a_row(&modifier) {
                format!("Instruction '{name}' requires '.v8.b32/.v4.b64' type with '{modifier}' modifier")
            } else {
                format!("Illegal modifier '{modifier}' for instruction '{name}'")
            }];
        }
        let foreign = modifiers.iter().find(|m| type_of(m).is_none() && !in_a_row(m));
        if let Some(modifier) = foreign {
            return vec![format!("Illegal modifier '{modifier}' for instruction '{name}'")];
        }
    }
    messages.push(format!("Unexpected instruction types specified for '{name}'"));
    messages
}
