//! Which of an engine's cache groups counts. Models that mix kinds of attention keep a prompt's blocks once for each group, under the
//! same hashes: counted together, blocks would be there that only a sliding window of them is kept of.

/// Most groups that are told apart; models have a handful.
const MAX_GROUPS: u32 = 64;

/// The group of one publisher that is counted: the first of full attention, as in Dynamo.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheGroups {
    main: Option<u32>,
}

impl CacheGroups {
    /// Whether a stored event counts.
    pub(super) fn stores(&mut self, group: Option<u32>, kind: Option<&[u8]>, has_window: bool) -> bool {
        let is_full = match kind {
            Some(kind) => {
                matches!(kind, b"full_attention" | b"mla_attention" | b"sink_full_attention") && !has_window
            }
            // Engines that do not say have one kind.
            None => group.unwrap_or(0) == 0 && !has_window,
        };
        let Some(group) = group else { return is_full };
        if is_full && self.main.is_none() && group < MAX_GROUPS {
            self.main = Some(group);
        }
        is_full && self.main == Some(group)
    }

    /// Whether a removed event counts: it bears no kind.
    pub(super) fn removes(self, group: Option<u32>) -> bool {
        group.is_none_or(|group| group == self.main.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_group_of_full_attention_counts() {
        let mut groups = CacheGroups::default();
        assert!(!groups.stores(Some(0), Some(b"sliding_window"), true));
        assert!(groups.stores(Some(1), Some(b"full_attention"), false));
        assert!(!groups.stores(Some(2), Some(b"full_attention"), false), "the same blocks again");
        assert!(!groups.stores(Some(3), Some(b"mamba"), false));
        assert_eq!([0, 1, 2].map(|group| groups.removes(Some(group))), [false, true, false]);
        assert!(groups.removes(None));
    }

    #[test]
    fn without_kinds_the_first_group_counts() {
        let mut groups = CacheGroups::default();
        assert!(groups.stores(None, None, false) && groups.removes(None) && groups.removes(Some(0)));
        assert!(groups.stores(Some(0), None, false) && !groups.stores(Some(1), None, false));
        assert!(!groups.removes(Some(1)));
    }
}
