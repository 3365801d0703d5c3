//! A row of the table.

use crate::{Check, Checks, Port, Right, Role};

const ROLES: usize = Role::ALL.len();

/// What each role may do with an RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    rights: [Right; ROLES],
    at_stores: Option<[Right; ROLES]>,
    itself: Option<Check>,
    also: Checks,
    is_for_everybody: bool,
    like: Option<&'static str>,
}

impl Row {
    /// Nine letters with blanks between them, in the order of [`Role::ALL`].
    ///
    /// # Panics
    /// It is not such a text. All rows are constants, so that does not compile.
    #[must_use]
    pub const fn of(letters: &str) -> Self {
        Self {
            rights: rights(letters),
            at_stores: None,
            itself: None,
            also: Checks::NONE,
            is_for_everybody: false,
            like: None,
        }
    }

    /// By what it is seen that somebody calls it of itself.
    #[must_use]
    pub(crate) const fn itself(self, check: Check) -> Self {
        Self { itself: Some(check), ..self }
    }

    /// What is checked besides.
    #[must_use]
    pub(crate) const fn also(self, check: Check) -> Self {
        Self { also: self.also.and(check), ..self }
    }

    /// Other rights on the port of an object store.
    #[must_use]
    pub(crate) const fn at_stores(self, letters: &str) -> Self {
        Self { at_stores: Some(rights(letters)), ..self }
    }

    /// Also for those of whom nothing is known.
    #[must_use]
    pub(crate) const fn for_everybody(self) -> Self {
        Self { is_for_everybody: true, ..self }
    }

    /// The RPCs after which it was chosen, being newer than the table was.
    #[must_use]
    pub(crate) const fn like(self, older: &'static str) -> Self {
        Self { like: Some(older), ..self }
    }

    /// What a role may do on a port.
    #[must_use]
    pub const fn right(&self, role: Role, at: Port) -> Right {
        match self.at_stores {
            Some(rights) if matches!(at, Port::Store) => rights[role as usize],
            _ => self.rights[role as usize],
        }
    }

    /// What is to be checked of whoever has this right by this role, that of its job apart.
    #[must_use]
    pub fn checks(&self, role: Role, right: Right) -> Checks {
        let concerning = self.also.iter().filter(|check| check.concerns(role, right));
        let itself = self.itself.filter(|_| right == Right::Itself);
        concerning.chain(itself).fold(Checks::NONE, Checks::and)
    }

    /// Whether also those may call it of whom nothing is known.
    #[must_use]
    pub const fn is_for_everybody(&self) -> bool {
        self.is_for_everybody
    }

    /// After which RPCs it was chosen, if it is newer than the table was.
    #[must_use]
    pub const fn chosen_after(&self) -> Option<&'static str> {
        self.like
    }

    /// Its letters on a port, with blanks between them.
    #[must_use]
    pub fn letters(&self, at: Port) -> String {
        let letters: Vec<String> =
            Role::ALL.iter().map(|role| self.right(*role, at).letter().to_string()).collect();
        letters.join(" ")
    }
}

const fn rights(letters: &str) -> [Right; ROLES] {
    let letters = letters.as_bytes();
    assert!(letters.len() == 2 * ROLES - 1, "a row has nine letters with blanks between them");
    let mut rights = [Right::No; ROLES];
    let mut place = 0;
    while place < ROLES {
        assert!(place == 0 || letters[2 * place - 1] == b' ', "between two letters is a blank");
        rights[place] = Right::of(letters[2 * place]);
        place += 1;
    }
    rights
}
