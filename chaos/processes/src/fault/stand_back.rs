//! A drained node leads nothing. While faults last it may have to, as the only one that has everything; so this is
//! judged when they are over.

use std::time::Duration;

use tokio::time::Instant;

use super::Arena;
use super::roll::Roll;

/// For so long a drained node may go on leading: it looks for an heir, who must have everything.
const GRACE: Duration = Duration::from_secs(20);
/// For so long another one must lead without a break.
const CALM: Duration = Duration::from_secs(3);
/// How long until that has come.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// What one look shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Observation {
    /// Somebody is drained, and does not lead.
    Other,
    /// A drained node leads.
    Drained(u64),
    /// Neither, for this reason.
    Nothing(&'static str),
}

/// What was seen so far.
#[derive(Debug, Default)]
struct Watch {
    drained_since: Option<Duration>,
    calm_since: Option<Duration>,
}

/// Drains whoever leads, if nobody is drained yet, and waits until another one leads and goes on leading.
///
/// # Errors
/// The harness failed. The inner error is the cluster's: a drained node leads.
pub async fn stands_back(arena: &mut Arena<'_>) -> anyhow::Result<Result<(), String>> {
    let began = Instant::now();
    let mut watch = Watch::default();
    loop {
        arena.look_for_the_dead()?;
        let observed = look(arena).await;
        match watch.see(&observed, began.elapsed()) {
            Ok(false) => tokio::time::sleep(LOOK_PAUSE).await,
            Ok(true) => return Ok(Ok(())),
            Err(why) => return Ok(Err(why)),
        }
    }
}

async fn look(arena: &mut Arena<'_>) -> Observation {
    let Some(roll) = Roll::call(arena).await else { return Observation::Nothing("nobody leads") };
    let leading = roll.leading();
    if !roll.members.iter().any(|member| member.drained) {
        if let Some(leading) = leading {
            roll.drain(leading.id, true).await;
        }
        return Observation::Nothing("nobody can be drained");
    }
    match leading {
        Some(leading) if leading.drained => Observation::Drained(leading.id),
        _ => Observation::Other,
    }
}

impl Watch {
    /// What a look at that time shows; gives whether all is well.
    fn see(&mut self, observed: &Observation, at: Duration) -> Result<bool, String> {
        let before = std::mem::take(self);
        match observed {
            Observation::Other => self.calm_since = before.calm_since.or(Some(at)),
            Observation::Drained(_) => self.drained_since = before.drained_since.or(Some(at)),
            Observation::Nothing(_) => {}
        }
        let lasted = |since: Option<Duration>, long: Duration| since.is_some_and(|since| at - since >= long);
        if lasted(self.calm_since, CALM) {
            return Ok(true);
        }
        let seconds = at.as_secs();
        match observed {
            Observation::Drained(node) if lasted(self.drained_since, GRACE) || at >= PATIENCE => {
                Err(format!("node {node} is drained, and leads {seconds} s after the last fault"))
            }
            Observation::Nothing(why) if at >= PATIENCE => {
                Err(format!("{seconds} s after the last fault {why}"))
            }
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives what comes of looks a second apart.
    fn seen(looks: impl IntoIterator<Item = Observation>) -> Result<bool, String> {
        let mut watch = Watch::default();
        for (observed, second) in looks.into_iter().zip(0..) {
            match watch.see(&observed, Duration::from_secs(second)) {
                Ok(false) => {}
                ended => return ended,
            }
        }
        Ok(false)
    }

    fn times(observed: &Observation, count: usize) -> impl Iterator<Item = Observation> {
        std::iter::repeat_n(observed.clone(), count)
    }

    const NOBODY: Observation = Observation::Nothing("nobody leads");

    #[test]
    fn who_leads_in_peace_while_another_is_drained_ends_it() {
        assert_eq!(seen(times(&Observation::Other, 4)), Ok(true));
        let handed_over =
            times(&Observation::Drained(2), 15).chain(times(&NOBODY, 2)).chain(times(&Observation::Other, 4));
        assert_eq!(seen(handed_over), Ok(true));
    }

    #[test]
    fn a_drained_node_that_goes_on_leading_is_noticed() {
        let stays = seen(times(&NOBODY, 2).chain(times(&Observation::Drained(2), 60)));
        assert_eq!(stays, Err("node 2 is drained, and leads 22 s after the last fault".to_owned()));
    }

    #[test]
    fn one_that_leads_again_and_again_is_noticed() {
        let turn = || times(&Observation::Other, 2).chain(times(&Observation::Drained(3), 8));
        let again = seen((0..30).flat_map(|_| turn()));
        assert_eq!(again, Err("node 3 is drained, and leads 122 s after the last fault".to_owned()));
        assert_eq!(seen(times(&NOBODY, 200)), Err("120 s after the last fault nobody leads".to_owned()));
    }
}
