//! The nodes that are to be scheduled, and the choice among them: the one scheduled longest ago.

use std::collections::{BTreeMap, BTreeSet};

/// Nodes with the time each was last chosen and how often it was added.
#[derive(Clone, Default, Debug)]
pub struct NodeTable {
    items: BTreeMap<i32, NodeItem>,
    /// `(last chosen, node)`, so that the oldest comes first and of equals the smallest id.
    order: BTreeSet<(u64, i32)>,
    /// A logical clock: strictly increasing, so that no two choices happen at the same time.
    clock: u64,
}

/// One listed node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeItem {
    /// When it was chosen last, by the logical clock; 0 is never.
    pub last_scheduled: u64,
    /// How often it was added and not removed.
    pub references: u32,
}

impl NodeTable {
    /// Adds a node, or one more reference to it.
    pub fn add(&mut self, node: i32) {
        self.add_at(node, 0);
    }

    /// As [`NodeTable::add`]; a new node counts as chosen at `last_scheduled`.
    pub fn add_at(&mut self, node: i32, last_scheduled: u64) {
        self.clock = self.clock.max(last_scheduled);
        let item = self.items.entry(node).or_insert(NodeItem { last_scheduled, references: 0 });
        item.references += 1;
        self.order.insert((item.last_scheduled, node));
    }

    /// Takes one reference away; the last one takes the node off the list. A node that is not listed stays so.
    pub fn remove(&mut self, node: i32) {
        let Some(item) = self.items.get_mut(&node) else { return };
        item.references -= 1;
        if item.references == 0 {
            self.order.remove(&(item.last_scheduled, node));
            self.items.remove(&node);
        }
    }

    /// A listed node.
    pub fn item(&self, node: i32) -> Option<NodeItem> {
        self.items.get(&node).copied()
    }

    /// Chooses the node that was chosen longest ago among those that are not held back; of equals the smallest.
    pub fn choose(&mut self, is_held_back: impl Fn(i32) -> bool) -> Option<i32> {
        let (last, node) = self.order.iter().copied().find(|&(_, node)| !is_held_back(node))?;
        self.clock += 1;
        self.order.remove(&(last, node));
        self.order.insert((self.clock, node));
        if let Some(item) = self.items.get_mut(&node) {
            item.last_scheduled = self.clock;
        }
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeItem, NodeTable};

    fn table() -> NodeTable {
        let mut table = NodeTable::default();
        for (node, last) in [(1, 3), (2, 1), (4, 1)] {
            table.add_at(node, last);
        }
        table
    }

    #[test]
    fn the_node_chosen_longest_ago_comes_first_and_of_equals_the_smallest() {
        let mut table = table();
        let free = |_| false;
        let chosen: Vec<_> = (0..4).map(|_| table.choose(free)).collect();
        assert_eq!(chosen, [Some(2), Some(4), Some(1), Some(2)]);
    }

    #[test]
    fn nodes_held_back_are_skipped() {
        assert_eq!(table().choose(|node| node == 2 || node == 4), Some(1));
        assert_eq!(table().choose(|_| true), None);
    }

    #[test]
    fn a_node_stays_listed_until_its_last_reference_is_gone() {
        let mut table = NodeTable::default();
        table.add(7);
        table.add(7);
        table.remove(7);
        assert_eq!(table.item(7), Some(NodeItem { last_scheduled: 0, references: 1 }));
        table.remove(7);
        assert_eq!(table.item(7), None);
        table.remove(7);
        assert_eq!(table.item(7), None, "removing what is not listed does nothing");
        assert_eq!(table.choose(|_| false), None);
    }
}
