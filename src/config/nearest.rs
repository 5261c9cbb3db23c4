//! The known word that a mistyped one probably means.

/// The candidate closest to `word`, if it is close enough to be meant; the first of equals.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let mut best = (0.7, None);
    for candidate in candidates {
        let score = strsim::jaro_winkler(&word, &candidate.to_lowercase());
        if score > best.0 {
            best = (score, Some(candidate));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_nonsense_is_not() {
        let keys = ["limits.window", "limits.heap", "workers.cube"];
        assert_eq!(nearest("limits.windw", keys), Some("limits.window"));
        assert_eq!(nearest("Workers.Cubes", keys), Some("workers.cube"));
        assert_eq!(nearest("zzz", keys), None);
    }
}
