//! Double entry: accounts, transfers, holds (E1 to E4).
//!
//! The ledger refuses whatever would take an account below what it may owe; it knows no agents, no rules and no
//! clock. Sums fit because every balance is at most what came in from outside, and that is checked at the door.

use std::collections::BTreeMap;
use std::fmt;

use policy::{AgentId, Instant, Money};
use serde::{Serialize, Serializer};

use super::input::DocketId;
use super::row::{Row, Table};

/// Who holds money.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// The platform's own.
    Treasury,
    /// An agent's purse.
    Agent(AgentId),
    /// What the treasury laid out for a condemned agent's last episode.
    Case(DocketId, AgentId),
    /// Who is paid for model calls.
    Provider(String),
    /// A source of income; what it has paid stands here with a minus.
    Income(String),
    /// Income of a source that can still be reversed.
    Clearing(String),
    /// What calls cost beyond their holds (E3).
    Shortfall,
    /// The world: what the owner put in stands here with a minus.
    External,
}

impl Account {
    /// Whether its balance may be below zero: only where money comes in, and where an estimate fell short.
    const fn may_owe(&self) -> bool {
        match self {
            Self::Income(_) | Self::Shortfall | Self::External => true,
            Self::Treasury | Self::Agent(_) | Self::Case(..) | Self::Provider(_) | Self::Clearing(_) => false,
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Treasury => f.write_str("treasury"),
            Self::Agent(agent) => write!(f, "agent/{agent}"),
            Self::Case(docket, agent) => write!(f, "case/{docket}/{agent}"),
            Self::Provider(name) => write!(f, "provider/{name}"),
            Self::Income(source) => write!(f, "income/{source}"),
            Self::Clearing(source) => write!(f, "clearing/{source}"),
            Self::Shortfall => f.write_str("shortfall"),
            Self::External => f.write_str("external"),
        }
    }
}

impl Serialize for Account {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What an account has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Sum of its postings.
    pub posted_nano: Money,
    /// Sum of its open holds.
    pub held_nano: Money,
}

impl Balance {
    /// What can be spent: posted less held.
    pub fn available(self) -> Money {
        // Both are within what came in from outside, so the difference fits; were it not so, nothing is spendable.
        self.posted_nano.checked_sub(self.held_nano).unwrap_or(Money::ZERO)
    }
}

/// Money reserved for one purpose, on one account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hold {
    /// On which account.
    pub account: Account,
    /// How much.
    pub amount_nano: Money,
    /// Since when.
    pub opened_ms: Instant,
}

/// One balanced movement of money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Transfer {
    /// Its number, from one.
    pub id: u64,
    /// When.
    pub at_ms: Instant,
    /// Who gave.
    pub from: Account,
    /// Who got.
    pub to: Account,
    /// How much; never negative.
    pub amount_nano: Money,
    /// What for, in one word: `grant`, `income`, `call`.
    pub kind: &'static str,
    /// What it belongs to: a key, a call, a case.
    pub reference: String,
}

impl Transfer {
    /// Its row in the tables.
    pub(super) fn row(&self) -> Row {
        Row::new(
            Table::Transfers,
            [
                self.id.into(),
                self.at_ms.into(),
                self.from.to_string().into(),
                self.to.to_string().into(),
                self.amount_nano.into(),
                self.kind.into(),
                self.reference.as_str().into(),
            ],
        )
    }
}

/// Why the ledger moved nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The account has less than is asked for.
    #[error("account {account} has {available_nano} available, less than {wanted_nano}")]
    Short {
        /// Which.
        account: String,
        /// What it has.
        available_nano: Money,
        /// What was asked for.
        wanted_nano: Money,
    },
    /// A negative amount.
    #[error("the amount {amount_nano} is negative")]
    Negative {
        /// The amount.
        amount_nano: Money,
    },
    /// A sum that does not fit 64 bits.
    #[error("the balance of account {account} would not fit 64 bits")]
    Overflow {
        /// Which.
        account: String,
    },
    /// A hold of this name is open already.
    #[error("hold {hold} is open already")]
    HoldOpen {
        /// Which.
        hold: String,
    },
    /// No hold of this name is open: it has ended, and a hold ends once.
    #[error("hold {hold} is not open")]
    HoldNotOpen {
        /// Which.
        hold: String,
    },
}

/// What is posted against whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    /// Who gives.
    pub from: Account,
    /// Who gets.
    pub to: Account,
    /// How much.
    pub amount_nano: Money,
    /// What for.
    pub kind: &'static str,
    /// What it belongs to.
    pub reference: String,
}

/// All accounts and open holds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ledger {
    accounts: BTreeMap<Account, Balance>,
    holds: BTreeMap<String, Hold>,
    transfers: u64,
}

impl Ledger {
    /// What `account` has; an account that never moved has nothing.
    pub fn balance(&self, account: &Account) -> Balance {
        self.accounts.get(account).copied().unwrap_or_default()
    }

    /// Every account that ever moved.
    pub fn accounts(&self) -> impl Iterator<Item = (&Account, Balance)> {
        self.accounts.iter().map(|(account, balance)| (account, *balance))
    }

    /// Every open hold by its name.
    pub fn holds(&self) -> impl Iterator<Item = (&str, &Hold)> {
        self.holds.iter().map(|(name, hold)| (name.as_str(), hold))
    }

    /// One open hold.
    pub fn hold(&self, name: &str) -> Option<&Hold> {
        self.holds.get(name)
    }

    /// How many transfers there were.
    pub const fn transfers(&self) -> u64 {
        self.transfers
    }

    /// Moves money from one account to another.
    ///
    /// # Errors
    /// `Short`, `Negative` or `Overflow`; nothing has moved then.
    pub fn transfer(&mut self, at: Instant, posting: Posting) -> Result<Transfer, LedgerError> {
        let Posting { from, to, amount_nano, kind, reference } = posting;
        self.affords(&from, amount_nano)?;
        self.move_posted(&from, &to, amount_nano)?;
        self.transfers += 1;
        Ok(Transfer { id: self.transfers, at_ms: at, from, to, amount_nano, kind, reference })
    }

    /// Reserves money under a name.
    ///
    /// # Errors
    /// `Short`, `Negative`, `Overflow` or `HoldOpen`; nothing is reserved then.
    pub fn open(
        &mut self,
        at: Instant,
        name: &str,
        account: Account,
        amount_nano: Money,
    ) -> Result<(), LedgerError> {
        if self.holds.contains_key(name) {
            return Err(LedgerError::HoldOpen { hold: name.to_owned() });
        }
        self.affords(&account, amount_nano)?;
        let balance = self.balance(&account);
        let held_nano = balance.held_nano.checked_add(amount_nano).ok_or_else(|| overflow(&account))?;
        self.accounts.insert(account.clone(), Balance { held_nano, ..balance });
        self.holds.insert(name.to_owned(), Hold { account, amount_nano, opened_ms: at });
        Ok(())
    }

    /// Ends a hold and gives all of it back.
    ///
    /// # Errors
    /// `HoldNotOpen`.
    pub fn release(&mut self, name: &str) -> Result<Hold, LedgerError> {
        let hold =
            self.holds.remove(name).ok_or_else(|| LedgerError::HoldNotOpen { hold: name.to_owned() })?;
        let balance = self.balance(&hold.account);
        let held_nano =
            balance.held_nano.checked_sub(hold.amount_nano).ok_or_else(|| overflow(&hold.account))?;
        self.accounts.insert(hold.account.clone(), Balance { held_nano, ..balance });
        Ok(hold)
    }

    /// The first broken promise: the sum is zero, nobody is below zero, what is held is what the holds say.
    pub fn broken(&self) -> Option<String> {
        let sum: i128 = self.accounts.values().map(|balance| i128::from(balance.posted_nano.nano())).sum();
        if sum != 0 {
            return Some(format!("the ledger sums to {sum} nano-dollars, not to zero"));
        }
        let mut held: BTreeMap<&Account, i128> = BTreeMap::new();
        for hold in self.holds.values() {
            *held.entry(&hold.account).or_default() += i128::from(hold.amount_nano.nano());
        }
        self.accounts.iter().find_map(|(account, balance)| {
            let holds = held.get(account).copied().unwrap_or(0);
            let stated = i128::from(balance.held_nano.nano());
            let available = i128::from(balance.posted_nano.nano()) - stated;
            if holds != stated {
                Some(format!("account {account} says {stated} held, its holds say {holds}"))
            } else if available < 0 && !account.may_owe() {
                Some(format!("account {account} has {available} nano-dollars available"))
            } else {
                None
            }
        })
    }

    fn affords(&self, account: &Account, wanted_nano: Money) -> Result<(), LedgerError> {
        if wanted_nano.is_negative() {
            return Err(LedgerError::Negative { amount_nano: wanted_nano });
        }
        let available_nano = self.balance(account).available();
        if account.may_owe() || available_nano >= wanted_nano {
            return Ok(());
        }
        Err(LedgerError::Short { account: account.to_string(), available_nano, wanted_nano })
    }

    fn move_posted(&mut self, from: &Account, to: &Account, amount_nano: Money) -> Result<(), LedgerError> {
        if from == to {
            return Ok(());
        }
        let (giver, taker) = (self.balance(from), self.balance(to));
        let left = giver.posted_nano.checked_sub(amount_nano).ok_or_else(|| overflow(from))?;
        let more = taker.posted_nano.checked_add(amount_nano).ok_or_else(|| overflow(to))?;
        self.accounts.insert(from.clone(), Balance { posted_nano: left, ..giver });
        self.accounts.insert(to.clone(), Balance { posted_nano: more, ..taker });
        Ok(())
    }
}

fn overflow(account: &Account) -> LedgerError {
    LedgerError::Overflow { account: account.to_string() }
}
