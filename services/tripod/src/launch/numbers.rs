//! Which job a program belongs to, how many tasks that has, and which of them it is: from flags, else
//! from what the launcher above has put into the environment.

use tripod_proto::code::Code;

use crate::failure::Failure;
use crate::launch::tf_config::TfConfig;

/// What the flags say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) job: Option<String>,
    pub(crate) tasks: Option<u32>,
    pub(crate) task: Option<u32>,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) job: String,
    /// Absent: a job that exists already knows.
    pub(crate) tasks: Option<u32>,
    pub(crate) task: u32,
    /// What the user should know of how these came about.
    pub(crate) notes: Vec<String>,
}

/// What starts many processes, and tells each its number by variables of the environment.
struct Launcher {
    name: &'static str,
    task: &'static str,
    tasks: Option<&'static str>,
}

/// In the order in which they are looked for. One that is started by another one comes first: below
/// `mpirun` in a Slurm allocation, `SLURM_PROCID` is that of whatever called `mpirun`.
const LAUNCHERS: [Launcher; 5] = [
    Launcher { name: "Open MPI", task: "OMPI_COMM_WORLD_RANK", tasks: Some("OMPI_COMM_WORLD_SIZE") },
    Launcher { name: "PMI", task: "PMI_RANK", tasks: Some("PMI_SIZE") },
    Launcher { name: "Slurm", task: "SLURM_PROCID", tasks: Some("SLURM_NTASKS") },
    // An indexed job tells its pods their number, but not how many there are.
    Launcher { name: "Kubernetes", task: "JOB_COMPLETION_INDEX", tasks: None },
    Launcher { name: "torchrun", task: "RANK", tasks: Some("WORLD_SIZE") },
];

/// Reads one variable of the environment.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What one source says.
struct Found {
    tasks: Option<(String, u32)>,
    task: Option<(String, u32)>,
}

/// Finds the numbers.
///
/// # Errors
/// Wrong usage: one is missing everywhere, or is not legal.
pub(crate) fn find(
    asked: &Asked,
    variables: Variables<'_>,
    tf_config: Option<&TfConfig>,
) -> Result<Numbers, Failure> {
    let found = look(variables, tf_config)?;
    let mut notes = Vec::new();
    let tasks = choose("--tasks", asked.tasks, found.tasks, &mut notes);
    let task = choose("--task-id", asked.task, found.task, &mut notes).ok_or_else(|| no_task(tasks))?;
    let job = asked.job.clone().or_else(|| of_slurm(variables)).ok_or_else(no_job)?;
    Ok(Numbers { job, tasks, task, notes })
}

/// Who started this process, and as which of its own: `Slurm 5`. `None`: nobody that is known.
pub(crate) fn launcher(variables: Variables<'_>) -> Option<String> {
    LAUNCHERS.iter().find_map(|launcher| {
        let number: u32 = variables(launcher.task)?.parse().ok()?;
        Some(format!("{} {number}", launcher.name))
    })
}

/// Takes the first launcher that tells the task.
fn look(variables: Variables<'_>, tf_config: Option<&TfConfig>) -> Result<Found, Failure> {
    for launcher in &LAUNCHERS {
        let Some(task) = number(launcher.task, variables, launcher.name)? else { continue };
        let tasks = match launcher.tasks {
            Some(name) => number(name, variables, launcher.name)?.map(|tasks| (name.to_owned(), tasks)),
            None => None,
        };
        return Ok(Found { tasks, task: Some((launcher.task.to_owned(), task)) });
    }
    let position = tf_config.and_then(TfConfig::position);
    let from_tf = |number: u32| ("TF_CONFIG".to_owned(), number);
    Ok(Found {
        tasks: position.as_ref().map(|position| from_tf(position.tasks)),
        task: position.as_ref().map(|position| from_tf(position.task)),
    })
}

fn number(name: &str, variables: Variables<'_>, launcher: &str) -> Result<Option<u32>, Failure> {
    let Some(text) = variables(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let number = text.parse().map_err(|_| {
        Failure::new(Code::TaskUnnamed, format!(
            "{name}=`{text}` of the environment ({launcher}) is no number; give --task-id and --tasks, and \
             unset it"
        ))
    })?;
    Ok(Some(number))
}

fn choose(
    flag: &str,
    asked: Option<u32>,
    found: Option<(String, u32)>,
    notes: &mut Vec<String>,
) -> Option<u32> {
    match (asked, found) {
        (Some(asked), Some((name, found))) if asked != found => {
            notes.push(format!("{flag} {asked} is used, although {name} is {found}"));
            Some(asked)
        }
        (Some(asked), _) => Some(asked),
        (None, found) => found.map(|(_, number)| number),
    }
}

/// A step of a Slurm job has a name of its own; so has each run of a job that Slurm puts into the queue
/// again, because a job that has ended badly stays so.
fn of_slurm(variables: Variables<'_>) -> Option<String> {
    let get = |name: &str| variables(name).filter(|text| !text.is_empty());
    let id = get("SLURM_JOB_ID")?;
    let step = get("SLURM_STEP_ID").map_or_else(String::new, |step| format!(".{step}"));
    let again = get("SLURM_RESTART_COUNT").filter(|count| count != "0");
    let again = again.map_or_else(String::new, |count| format!("-r{count}"));
    Some(format!("slurm-{id}{step}{again}"))
}

fn no_task(tasks: Option<u32>) -> Failure {
    let names: Vec<_> = LAUNCHERS.iter().map(|launcher| launcher.task).collect();
    let last = tasks.map_or_else(|| "N-1".to_owned(), |tasks| tasks.saturating_sub(1).to_string());
    Failure::new(
        Code::TaskUnnamed,
        format!(
            "which task is this? Give --task-id 0 to {last}, or start it where one of {}, or TF_CONFIG, is set",
            names.join(", ")
        ),
    )
}

fn no_job() -> Failure {
    Failure::new(
        Code::TaskUnnamed,
        "which job is this? Give --job NAME, the same for all its tasks and another one for each run (a job \
         of Slurm has one by itself)",
    )
}

/// What to say when nobody knows how many tasks the job has.
pub(crate) fn no_size(job: &str) -> Failure {
    let names: Vec<_> = LAUNCHERS.iter().filter_map(|launcher| launcher.tasks).collect();
    Failure::new(
        Code::TaskUnnamed,
        format!(
            "how many tasks has job `{job}`? There is none of that name yet. Give --tasks N (or TRIPOD_TASKS, as \
             in the manifest of an indexed Kubernetes job), or start it where one of {}, or TF_CONFIG, is set",
            names.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(variables: &[(&str, &str)], asked: &Asked) -> Result<Numbers, String> {
        let get = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let tf_config = get("TF_CONFIG").map(|text| TfConfig::parse(&text).expect("legal"));
        find(asked, &get, tf_config.as_ref()).map_err(|failure| {
            assert!(failure.code() == Code::TaskUnnamed);
            failure.to_string()
        })
    }

    fn job(name: &str) -> Asked {
        Asked { job: Some(name.into()), ..Asked::default() }
    }

    fn found(tasks: impl Into<Option<u32>>, task: u32) -> Result<Numbers, String> {
        Ok(Numbers { job: "j".into(), tasks: tasks.into(), task, notes: vec![] })
    }

    #[test]
    fn who_started_a_process_and_as_which_is_told_in_words() {
        let of = |variables: &[(&str, &str)]| {
            let get = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            launcher(&get)
        };
        let within = [("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "3")];
        assert_eq!(of(&within).as_deref(), Some("Open MPI 3"), "the one that started it");
        assert_eq!(of(&[("RANK", "x"), ("SLURM_PROCID", "5")]).as_deref(), Some("Slurm 5"));
        assert_eq!(of(&[("RANK", "x")]), None);
    }

    #[test]
    fn every_launcher_tells_the_numbers_in_its_own_way() {
        let slurm = [("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4")];
        assert_eq!(find_in(&slurm, &job("j")), found(4, 2));
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "3")];
        assert_eq!(find_in(&open_mpi, &job("j")), found(3, 1));
        assert_eq!(find_in(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")], &job("j")), found(2, 0));
        assert_eq!(find_in(&[("JOB_COMPLETION_INDEX", "5")], &job("j")), found(None, 5));
        assert_eq!(find_in(&[("RANK", "7"), ("WORLD_SIZE", "8")], &job("j")), found(8, 7));
        let chief =
            r#"{"cluster":{"chief":["a:1"],"worker":["b:1","c:1"]},"task":{"type":"worker","index":1}}"#;
        assert_eq!(find_in(&[("TF_CONFIG", chief)], &job("j")), found(3, 2));
    }

    #[test]
    fn the_launcher_that_is_nearest_to_the_program_counts() {
        let both = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "8"),
            ("OMPI_COMM_WORLD_RANK", "5"),
            ("OMPI_COMM_WORLD_SIZE", "6"),
        ];
        assert_eq!(find_in(&both, &job("j")), found(6, 5));
        let torch = [("RANK", "1"), ("WORLD_SIZE", "2"), ("SLURM_PROCID", "3"), ("SLURM_NTASKS", "4")];
        assert_eq!(find_in(&torch, &job("j")), found(4, 3));
    }

    #[test]
    fn a_flag_wins_with_a_note() {
        let asked = Asked { tasks: Some(3), task: Some(1), ..job("j") };
        let numbers = find_in(&[("RANK", "1"), ("WORLD_SIZE", "8")], &asked).expect("found");
        assert_eq!((numbers.tasks, numbers.task), (Some(3), 1));
        assert_eq!(numbers.notes, ["--tasks 3 is used, although WORLD_SIZE is 8"]);
    }

    #[test]
    fn a_job_of_slurm_has_a_name() {
        let named = |more: &[(&str, &str)]| {
            let least = [("SLURM_JOB_ID", "123"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")];
            let variables: Vec<_> = least.iter().chain(more).copied().collect();
            find_in(&variables, &Asked::default()).expect("found").job
        };
        assert_eq!(named(&[]), "slurm-123");
        assert_eq!(named(&[("SLURM_STEP_ID", "0")]), "slurm-123.0");
        assert_eq!(named(&[("SLURM_STEP_ID", "0"), ("SLURM_RESTART_COUNT", "0")]), "slurm-123.0");
        assert_eq!(named(&[("SLURM_STEP_ID", "0"), ("SLURM_RESTART_COUNT", "2")]), "slurm-123.0-r2");
    }

    #[test]
    fn what_is_missing_or_wrong_is_told_with_where_it_may_come_from() {
        let text = find_in(&[], &job("j")).expect_err("refused");
        assert!(text.contains("--task-id 0 to N-1") && text.contains("SLURM_PROCID"), "{text}");
        let text = find_in(&[("RANK", "0"), ("WORLD_SIZE", "2")], &Asked::default()).expect_err("refused");
        assert!(text.starts_with("T1105 task-unnamed: which job is this? Give --job NAME"), "{text}");
        let text = find_in(&[("PMI_RANK", "one")], &job("j")).expect_err("refused");
        assert!(
            text.starts_with("T1105 task-unnamed: PMI_RANK=`one` of the environment (PMI) is no number"),
            "{text}"
        );
        let text = no_size("j").to_string();
        assert!(text.contains("--tasks N") && text.contains("WORLD_SIZE"), "{text}");
    }

    #[test]
    fn an_empty_variable_is_none() {
        assert_eq!(
            find_in(&[("SLURM_PROCID", ""), ("RANK", "1"), ("WORLD_SIZE", "2")], &job("j")),
            found(2, 1)
        );
    }
}
