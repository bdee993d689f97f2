//! Takes JSON apart while it arrives: the elements of one array of a document, one by one, then what surrounds them. Holds one
//! element at a time and little of a large one, so that a list may be as long as it likes. Knows neither etcd nor Kubernetes.

/// What is held of a document.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest text; of a longer one nothing is held but its quotes.
    pub text_bytes: usize,
    /// Most bytes of an element, and of what surrounds the elements; of more only the beginning is held.
    pub piece_bytes: usize,
}

/// The array whose elements are handed out.
#[derive(Clone, Copy, Debug)]
pub struct Array {
    /// Its field, with quotes.
    pub field: &'static str,
    /// Brackets around that field.
    pub depth: usize,
}

/// A part of a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DocumentPart {
    /// An element of the array.
    Element(Piece),
    /// The document is over: all of it, with an array that is empty.
    End(Piece),
}

/// JSON as it was sent, as far as it is held.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Piece {
    /// As it was sent, unless something of it is left out.
    pub json: Vec<u8>,
    /// How long it was.
    pub bytes: u64,
    /// What of it is not in `json`.
    pub left_out: Skipped,
}

/// What is not held of a piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Skipped {
    /// All is there.
    #[default]
    Nothing,
    /// Long texts are empty; it is JSON nevertheless.
    Texts,
    /// The end is missing, so that it is no JSON.
    End,
}

/// See the module.
#[derive(Debug)]
pub struct Splitter {
    array: Option<Array>,
    limits: Limits,
    depth: usize,
    is_in_array: bool,
    text: Option<Text>,
    element: Piece,
    around: Piece,
    document_bytes: u64,
}

/// A text that is being read.
#[derive(Clone, Copy, Debug)]
struct Text {
    /// Where it begins in the piece.
    from: usize,
    is_escaped: bool,
    is_left_out: bool,
}

impl Splitter {
    /// For documents one after the other. Without an array each is handed out as a whole.
    pub fn new(array: Option<Array>, limits: Limits) -> Self {
        Self {
            array,
            limits,
            depth: 0,
            is_in_array: false,
            text: None,
            element: Piece::default(),
            around: Piece::default(),
            document_bytes: 0,
        }
    }

    /// How much of the current document was read.
    pub fn document_bytes(&self) -> u64 {
        self.document_bytes
    }

    /// Reads on up to the end of a part, and takes what was read off `bytes`. `None`: all was read.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Option<DocumentPart> {
        while let Some(&first) = bytes.first() {
            let run = match self.text {
                Some(text) if !text.is_escaped => plain_length(bytes),
                _ => 0,
            };
            let (now, rest) = bytes.split_at(run.max(1));
            *bytes = rest;
            self.document_bytes += now.len() as u64;
            let part = match self.text {
                _ if run > 0 => {
                    self.push(now);
                    None
                }
                Some(text) => self.in_text(text, first),
                None => self.outside(first),
            };
            if part.is_some() {
                return part;
            }
        }
        None
    }

    /// No more comes: what there is of a document, if one has begun.
    pub fn finish(&mut self) -> Option<DocumentPart> {
        (!self.around.json.is_empty()).then(|| self.end())
    }

    /// The element that has begun, closed where it stands: JSON if nothing in it but maps is open.
    pub fn unfinished(&self) -> Option<Piece> {
        let array = self.array.filter(|_| self.is_in_array && !self.element.json.is_empty())?;
        let mut piece = self.element.clone();
        piece.left_out = Skipped::End;
        if self.text.is_some() {
            piece.json.push(b'"');
        }
        piece.json.extend(std::iter::repeat_n(b'}', self.depth - array.depth - 1));
        Some(piece)
    }

    fn in_text(&mut self, text: Text, byte: u8) -> Option<DocumentPart> {
        if byte == b'\n' {
            // No text of JSON has one: the line ends in the middle of its document.
            return Some(self.end());
        }
        let is_over = byte == b'"' && !text.is_escaped;
        if is_over {
            self.text = None;
        } else if let Some(text) = &mut self.text {
            text.is_escaped = byte == b'\\' && !text.is_escaped;
        }
        self.push(&[byte]);
        None
    }

    fn outside(&mut self, byte: u8) -> Option<DocumentPart> {
        let is_own_level = self.is_in_array && self.array.is_some_and(|array| self.depth == array.depth + 1);
        match byte {
            b',' if is_own_level => return self.element(),
            b'{' | b'[' => {
                let begins = byte == b'[' && self.begins_array();
                self.push(&[byte]);
                self.depth += 1;
                self.is_in_array |= begins;
            }
            b'}' | b']' => {
                let last = if is_own_level { self.element() } else { None };
                self.is_in_array &= !is_own_level;
                self.depth = self.depth.saturating_sub(1);
                self.push(&[byte]);
                return if self.depth == 0 { Some(self.end()) } else { last };
            }
            b'"' => {
                self.push(&[byte]);
                let from = self.piece().json.len();
                self.text = Some(Text { from, is_escaped: false, is_left_out: false });
            }
            b'\n' if self.depth == 0 => return self.finish(),
            b' ' | b'\t' | b'\r' | b'\n' if self.piece().json.is_empty() => {}
            _ => self.push(&[byte]),
        }
        None
    }

    /// Whether the bracket that comes now opens the array.
    fn begins_array(&self) -> bool {
        let Some(array) = self.array.filter(|array| !self.is_in_array && self.depth == array.depth) else {
            return false;
        };
        let before = self.around.json.trim_ascii_end().strip_suffix(b":").unwrap_or_default();
        before.trim_ascii_end().ends_with(array.field.as_bytes())
    }

    fn element(&mut self) -> Option<DocumentPart> {
        let element = std::mem::take(&mut self.element);
        (element.bytes > 0).then_some(DocumentPart::Element(element))
    }

    fn end(&mut self) -> DocumentPart {
        let around = std::mem::take(&mut self.around);
        *self = Self::new(self.array, self.limits);
        DocumentPart::End(around)
    }

    fn piece(&mut self) -> &mut Piece {
        if self.is_in_array { &mut self.element } else { &mut self.around }
    }

    fn push(&mut self, bytes: &[u8]) {
        let Limits { text_bytes, piece_bytes } = self.limits;
        let piece = if self.is_in_array { &mut self.element } else { &mut self.around };
        piece.bytes += bytes.len() as u64;
        if piece.left_out == Skipped::End {
            return;
        }
        if let Some(text) = &mut self.text {
            if !text.is_left_out && piece.json.len() + bytes.len() - text.from > text_bytes {
                text.is_left_out = true;
                piece.json.truncate(text.from);
                piece.left_out = Skipped::Texts;
            }
            if text.is_left_out {
                return;
            }
        }
        if piece.json.len() + bytes.len() > piece_bytes {
            piece.left_out = Skipped::End;
            return;
        }
        piece.json.extend_from_slice(bytes);
    }
}

/// How many bytes of a text come before one that means something.
fn plain_length(bytes: &[u8]) -> usize {
    memchr::memchr3(b'"', b'\\', b'\n', bytes).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests;
