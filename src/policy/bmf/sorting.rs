//! Sorting of numbers of nodes, which are small and near each other.

/// Sorts different numbers. Many that are near each other are marked in a row of bits, which is `marks`, all 0 before and after.
pub(super) fn sort(numbers: &mut [u32], marks: &mut Vec<u64>) {
    const WORD: u32 = u64::BITS;
    let first = numbers.iter().min().map_or(0, |least| least / WORD);
    let n_words = (numbers.iter().max().map_or(0, |most| most / WORD) - first + 1) as usize;
    if n_words > 2 * numbers.len() {
        return numbers.sort_unstable();
    }
    marks.resize(n_words.max(marks.len()), 0);
    numbers.iter().for_each(|number| marks[(number / WORD - first) as usize] |= 1 << (number % WORD));
    let mut places = numbers.iter_mut();
    for (word, begin) in marks[..n_words].iter_mut().zip((first..).map(|word| word * WORD)) {
        while *word != 0 {
            if let Some(place) = places.next() {
                *place = begin + word.trailing_zeros();
            }
            *word &= *word - 1;
        }
    }
}

/// The place of each in the ascending order of these numbers, of equals the first one first.
pub(super) fn places(mut numbers: Vec<u32>) -> Vec<u32> {
    let most = numbers.iter().max().map_or(0, |&most| most as usize);
    let mut first = vec![0_u32; most + 2];
    numbers.iter().for_each(|&number| first[number as usize + 1] += 1);
    for number in 0..=most {
        first[number + 1] += first[number];
    }
    for number in &mut numbers {
        let place = &mut first[*number as usize];
        *number = *place;
        *place += 1;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::{places, sort};

    #[test]
    fn numbers_are_sorted_whether_they_are_near_each_other_or_not() {
        let mut marks = Vec::new();
        for spread in [1, 3, 64, 5_000] {
            let mut numbers: Vec<u32> = (0..300).map(|number| 70 + (number * 7 % 300) * spread).collect();
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            sort(&mut numbers, &mut marks);
            assert_eq!(numbers, sorted);
            assert!(marks.iter().all(|&word| word == 0));
        }
    }

    #[test]
    fn of_equal_numbers_the_first_has_the_first_place() {
        assert_eq!(places(vec![2, 0, 2, 1, 0]), [3, 0, 4, 2, 1]);
        assert!(places(Vec::new()).is_empty());
    }
}
