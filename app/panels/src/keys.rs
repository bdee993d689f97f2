//! The keyboard of the page as a whole; the tree, the time line and the tour have keys of their own.

use radixscope_model::id::Slot;

use crate::url::{Address, Panel};

/// What a key does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageKey {
    /// Opens the help.
    Help,
    /// Moves the focus to the tree.
    FocusTree,
    /// Marks the moment A (0) or B (1).
    Mark(usize),
    /// Picks out a worker, or lets go of it.
    Pick(Slot),
    /// Changes the address, see [`AddressKey::change`].
    Address(AddressKey),
}

/// A key that changes the address alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKey {
    /// The next theme.
    Theme,
    /// The kiosk, or out of it.
    Kiosk,
    /// The next panel; after the last one the first.
    NextPanel,
    /// Lets go of the worker picked out.
    Unpick,
}

impl AddressKey {
    /// Does it.
    pub fn change(self, address: &mut Address) {
        match self {
            AddressKey::Theme => address.theme = address.theme.next(),
            AddressKey::Kiosk => address.kiosk = !address.kiosk,
            AddressKey::NextPanel => address.panel = after(address.panel),
            AddressKey::Unpick => address.worker = None,
        }
    }
}

impl PageKey {
    /// Of a key's name; `None`: it is not the page's.
    pub fn of(key: &str) -> Option<Self> {
        Some(match key {
            "?" => Self::Help,
            "t" | "T" => Self::Address(AddressKey::Theme),
            "k" | "K" => Self::Address(AddressKey::Kiosk),
            "v" | "V" => Self::Address(AddressKey::NextPanel),
            "f" | "F" => Self::FocusTree,
            "a" | "A" => Self::Mark(0),
            "b" | "B" => Self::Mark(1),
            "0" => Self::Address(AddressKey::Unpick),
            digit => match digit.parse::<u16>() {
                Ok(n @ 1..=9) => Self::Pick(Slot(n - 1)),
                _ => return None,
            },
        })
    }
}

fn after(panel: Panel) -> Panel {
    let at = Panel::ALL.iter().position(|&p| p == panel).unwrap_or(0);
    Panel::ALL[(at + 1) % Panel::ALL.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_key(key: &str, address: &Address) -> Address {
        let mut address = address.clone();
        match PageKey::of(key) {
            Some(PageKey::Address(key)) => key.change(&mut address),
            other => panic!("{other:?}"),
        }
        address
    }

    #[test]
    fn each_key_of_the_page_does_one_thing() {
        let start = Address::parse("?worker=7").0;
        assert_eq!(PageKey::of("?"), Some(PageKey::Help));
        assert_eq!(
            ["f", "a", "B"].map(PageKey::of),
            [Some(PageKey::FocusTree), Some(PageKey::Mark(0)), Some(PageKey::Mark(1))]
        );
        assert_eq!(["1", "9"].map(PageKey::of), [Some(PageKey::Pick(Slot(0))), Some(PageKey::Pick(Slot(8)))]);
        assert_eq!(["10", "x", "Enter", ""].map(PageKey::of), [None; 4]);
        assert!(start.worker.is_some());
        assert_eq!(after_key("0", &start).worker, None);
        assert!(after_key("k", &start).kiosk && !after_key("K", &after_key("k", &start)).kiosk);
        assert_ne!(after_key("t", &start).theme, start.theme);
    }

    #[test]
    fn v_walks_through_all_panels_and_comes_back() {
        let start = Address::parse("").0;
        let mut seen = vec![start.panel];
        let mut address = after_key("v", &start);
        while address.panel != start.panel {
            seen.push(address.panel);
            address = after_key("V", &address);
        }
        assert_eq!(seen.len(), Panel::ALL.len());
        assert!(Panel::ALL.iter().all(|panel| seen.contains(panel)));
    }
}
