//! An input stream: packets that wait for a node, and the time before which nothing comes any more.

use super::safe_queue::SafeQueue;
use super::timestamp;

/// One piece of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its place in time.
    pub timestamp: i64,
}

/// Packets on their way to a node, in order of arrival.
#[derive(Debug)]
pub struct InputStream {
    packets: SafeQueue<Packet>,
    next_bound: i64,
}

impl Default for InputStream {
    fn default() -> InputStream {
        InputStream { packets: SafeQueue::default(), next_bound: timestamp::UNSET + 1 }
    }
}

impl InputStream {
    /// Adds a packet; the end of the file says that nothing comes behind it.
    pub fn add(&mut self, packet: Packet) {
        let is_end = packet.timestamp == timestamp::EOF || packet.timestamp == timestamp::EOS;
        self.next_bound = if is_end { timestamp::DONE } else { packet.timestamp.saturating_add(1) };
        let fits = self.packets.push(packet);
        debug_assert!(fits, "a stream has no limit of its own");
    }

    /// Takes the first packet.
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop()
    }

    /// No packet with a smaller timestamp comes any more.
    pub fn time_bound(&self) -> i64 {
        self.next_bound
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{InputStream, Packet, timestamp};

    #[test]
    fn the_time_bound_follows_the_packets_and_ends_with_the_file() {
        let mut stream = InputStream::default();
        assert_eq!(stream.time_bound(), 0);
        stream.add(Packet { timestamp: 10 });
        assert_eq!(stream.time_bound(), 11);
        stream.add(Packet { timestamp: timestamp::EOF });
        assert_eq!(stream.time_bound(), timestamp::DONE);
        assert_eq!(stream.pop(), Some(Packet { timestamp: 10 }));
        assert_eq!((stream.len(), stream.is_empty()), (1, false));
    }

    #[test]
    fn special_timestamps_have_the_numbers_of_bmf() {
        use timestamp::{DONE, DYN_EOS, EOF, EOS, INF_SRC, PAUSE};
        let all = [PAUSE, DYN_EOS, EOF, EOS, INF_SRC, DONE];
        assert_eq!(all.map(|special| i64::MAX - special), [5, 4, 3, 2, 1, 0]);
    }
}
