//! The known word that a mistyped one was probably meant to be.

/// Bytes of the longest word that is compared; nobody mistypes a longer one.
const LONGEST: usize = 256;

/// The candidate most like `word`, if any is like it; the first of equals.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let lower = word.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let likeness = strsim::normalized_damerau_levenshtein(&lower, &candidate.to_lowercase());
        if likeness >= 0.5 && best.is_none_or(|(known, _)| likeness > known) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// "did you mean …?", or the list of what is known when nothing is near.
pub fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    match nearest(word, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean \"{candidate}\"?"),
        None => format!("known are {}", candidates.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_slips_are_recognised_and_strangers_are_not() {
        let known = ["cycles", "kernel", "deps"];
        assert_eq!(nearest("cylces", known), Some("cycles"));
        assert_eq!(nearest("Kernal", known), Some("kernel"));
        assert_eq!(nearest("zzz", known), None);
        let keys = ["limits.window", "limits.heap", "workers.cube"];
        assert_eq!(nearest("limits.windw", keys), Some("limits.window"));
        assert_eq!(nearest("Workers.Cubes", keys), Some("workers.cube"));
        assert_eq!(suggestion("dep", known), "did you mean \"deps\"?");
        assert_eq!(suggestion("zzz", known), "known are cycles, kernel, deps");
    }
}
