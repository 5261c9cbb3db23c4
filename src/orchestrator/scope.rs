//! Scopes: what they hold stays alive until they close.

use super::Orchestrator;
use crate::config::ScopeHold;
use crate::sync::Sharing;
use crate::window::{NONE, Outcomes, SlotRef, Window};

/// An open scope and the tasks it holds, as a list through their slots.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    head: SlotRef,
    tail: SlotRef,
    /// Tasks in the list.
    pub tasks: u64,
    /// Line of its beginning, if the program has lines.
    pub line: Option<u64>,
}

impl Scope {
    /// Gives up the hold of a closed scope on its tasks, newest first.
    pub fn release<S: Sharing>(self, window: &Window<S>, outcomes: &mut impl Outcomes) {
        let mut slot = self.head;
        for _ in 0..self.tasks {
            let next = window.next_in_scope(slot);
            window.release(slot, outcomes);
            slot = next;
        }
    }

    /// Whether the task in `slot` is in its list.
    pub fn holds<S: Sharing>(&self, window: &Window<S>, slot: SlotRef) -> bool {
        let mut at = self.head;
        for _ in 0..self.tasks {
            if at == slot {
                return true;
            }
            at = window.next_in_scope(at);
        }
        false
    }
}

impl Orchestrator {
    #[inline]
    pub(super) fn join_scope<S: Sharing>(&mut self, window: &Window<S>, slot: SlotRef) {
        if let Some(scope) = self.scopes.last_mut() {
            window.set_next_in_scope(slot, scope.head);
            if scope.head == NONE {
                scope.tail = slot;
            }
            scope.head = slot;
            scope.tasks += 1;
        }
    }

    /// Opens a scope.
    pub fn open_scope(&mut self) {
        self.scopes.push(Scope { head: NONE, tail: NONE, tasks: 0, line: self.line() });
        self.choose_ring();
    }

    /// Closes the innermost scope, whose hold on its tasks is then to be given up with [`Scope::release`].
    pub fn close_scope<S: Sharing>(&mut self, window: &Window<S>) -> Scope {
        let scope = self.scopes.pop().expect("sources match every end of a scope with a beginning");
        self.choose_ring();
        let outer = match self.rules.machine.rules.scope_hold {
            ScopeHold::Innermost => None,
            ScopeHold::Enclosing => self.scopes.last_mut(),
        };
        // The enclosing scope takes the list over before anything in it can retire.
        if let (Some(outer), true) = (outer, scope.head != NONE) {
            window.set_next_in_scope(scope.tail, outer.head);
            if outer.head == NONE {
                outer.tail = scope.tail;
            }
            outer.head = scope.head;
            outer.tasks += scope.tasks;
        }
        scope
    }
}
