//! A file system of its own for one node's data, so that it can be filled, or lose its power, alone.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, bail};

use super::mounts::{self, Skip, directory_name, run};

/// Bytes that the ballast grows by while the disk is filled to its end.
const FILL_STEPS_BYTES: [usize; 3] = [1 << 20, 64 << 10, 4 << 10];

/// What a [`Disk`] is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// On a file of the system's temporary directory, which must be a real disk. Can lose its power.
    Ext4,
    /// In memory, for full disks only: it makes nothing durable.
    Tmpfs,
}

/// A mounted file system. Dropping it takes it out of the tree, also while a node still runs on it.
#[derive(Debug)]
pub struct Disk {
    file_system: FileSystem,
    directory: PathBuf,
    mount: PathBuf,
}

impl Disk {
    /// Makes and mounts a file system of `bytes` bytes. Blocks.
    ///
    /// # Errors
    /// [`Skip`] where this machine or user cannot; else what went wrong.
    pub fn mount(file_system: FileSystem, bytes: u64) -> anyhow::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        mounts::ensure_mountable(file_system == FileSystem::Ext4)?;
        let temporary = std::env::temp_dir();
        mounts::sweep_leftovers(&temporary);
        let directory = temporary.join(directory_name(NUMBER.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        // From here on dropping cleans up.
        let disk = Self { file_system, mount: directory.join("mount"), directory };
        std::fs::create_dir(&disk.mount)?;
        match file_system {
            FileSystem::Ext4 => disk.format(bytes)?,
            FileSystem::Tmpfs => {
                run("mount", &["-t", "tmpfs", "-o", &format!("size={bytes}"), "none", &text(&disk.mount)])?;
            }
        }
        // A directory below the root, as the root itself holds `lost+found` and the ballast.
        std::fs::DirBuilder::new().mode(0o700).create(disk.data())?;
        File::open(disk.data())?.sync_all()?;
        File::open(&disk.mount)?.sync_all()?;
        Ok(disk)
    }

    /// Where a node's data belong.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.mount.join("data")
    }

    /// The root of the file system.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.mount
    }

    /// Bytes that a file could still take.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn free_bytes(&self) -> anyhow::Result<u64> {
        let told = Command::new("stat").args(["-f", "-c", "%a %S"]).arg(&self.mount).output()?;
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let parsed = told
            .trim()
            .split_once(' ')
            .and_then(|(blocks, size)| Some(blocks.parse::<u64>().ok()? * size.parse::<u64>().ok()?));
        parsed.with_context(|| format!("no free space told for {}", self.mount.display()))
    }

    /// Leaves a node `bytes` bytes of space, while it runs. Blocks.
    ///
    /// # Errors
    /// The ballast cannot be written for another reason than a full disk.
    pub fn fill(&self, leave_bytes: u64) -> anyhow::Result<()> {
        let mut ballast = OpenOptions::new().create(true).append(true).open(self.ballast())?;
        for step in FILL_STEPS_BYTES {
            let block = vec![0; step];
            while self.free_bytes()? >= leave_bytes + step as u64 {
                match ballast.write_all(&block) {
                    Ok(()) => {}
                    // The node takes space at the same time.
                    Err(error) if error.kind() == std::io::ErrorKind::StorageFull => break,
                    Err(error) => return Err(error).context("cannot fill the disk"),
                }
            }
        }
        // Else space would be reserved only, and the numbers change when it is written.
        ballast.sync_all().context("cannot fill the disk")
    }

    /// Gives back what [`Self::fill`] took.
    ///
    /// # Errors
    /// The ballast cannot be removed.
    pub fn free(&self) -> anyhow::Result<()> {
        match std::fs::remove_file(self.ballast()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context("cannot free the disk")
            }
            _ => Ok(()),
        }
    }

    /// Mounts an ext4 that was shut down again, which replays its log as after a power cut. Nobody may use
    /// it. Blocks.
    ///
    /// # Errors
    /// It cannot be unmounted or mounted.
    pub(super) fn mount_again(&self) -> anyhow::Result<()> {
        match self.file_system {
            FileSystem::Ext4 => {
                run("umount", &[&text(&self.mount)])?;
                self.mount_image()
            }
            FileSystem::Tmpfs => bail!("a disk in memory does not survive a power cut"),
        }
    }

    fn format(&self, bytes: u64) -> anyhow::Result<()> {
        let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(&self.directory).output()?;
        let in_memory = kind.stdout.starts_with(b"tmpfs") || kind.stdout.starts_with(b"ramfs");
        anyhow::ensure!(
            !in_memory,
            Skip::new("the temporary directory lies in memory; set TMPDIR to a real disk")
        );
        File::create(self.image())?.set_len(bytes)?;
        // No reserved blocks: full is full, also for root.
        run("mkfs.ext4", &["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0", &text(&self.image())])?;
        self.mount_image()
    }

    fn mount_image(&self) -> anyhow::Result<()> {
        run("mount", &["-o", "loop,noatime", &text(&self.image()), &text(&self.mount)])
    }

    fn image(&self) -> PathBuf {
        self.directory.join("image")
    }

    fn ballast(&self) -> PathBuf {
        self.mount.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A failure leaves a mount that the next process finds by the name; nobody is left to be told.
        let unmounted = mounts::unmount_lazily(&self.mount);
        if unmounted.is_ok() && !mounts::is_mounted(&self.mount) {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn mounted(file_system: FileSystem) -> Option<Disk> {
        match Disk::mount(file_system, 16 << 20) {
            Ok(disk) => Some(disk),
            Err(error) => {
                assert!(Skip::of(&error).is_some(), "{error:#}");
                None
            }
        }
    }

    #[test]
    fn a_disk_is_filled_to_its_end_and_freed() {
        for file_system in [FileSystem::Ext4, FileSystem::Tmpfs] {
            let Some(disk) = mounted(file_system) else { return };
            let before = disk.free_bytes().unwrap();
            disk.fill(1 << 20).unwrap();
            let left = disk.free_bytes().unwrap();
            assert!((512 << 10..(1 << 20) + 4096).contains(&left), "{left} bytes left");
            disk.fill(0).unwrap();
            let refused = std::fs::write(disk.data().join("f"), vec![0; 64 << 10]).unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
            disk.free().unwrap();
            disk.free().unwrap();
            assert!(disk.free_bytes().unwrap() + (1 << 20) > before);
        }
    }

    #[test]
    fn a_disk_in_use_leaves_the_tree_when_its_owner_panics() {
        let Some(disk) = mounted(FileSystem::Ext4) else { return };
        let (mount, directory) = (disk.mount.clone(), disk.directory.clone());
        let open = File::create(disk.data().join("held")).unwrap();
        let owner = std::thread::spawn(move || {
            let _disk = disk;
            panic!("planned");
        });
        assert!(owner.join().is_err());
        assert!(!mounts::is_mounted(&mount) && !directory.exists());
        drop(open);
        // The kernel gives the loop device back with the last file.
        let deadline = Instant::now() + Duration::from_secs(20);
        let image = directory.display().to_string();
        while String::from_utf8_lossy(&Command::new("losetup").arg("-a").output().unwrap().stdout)
            .contains(&image)
        {
            assert!(Instant::now() < deadline, "a loop device still has {image}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn what_a_killed_process_left_is_swept() {
        let Some(disk) = mounted(FileSystem::Tmpfs) else { return };
        let temporary = tempfile::tempdir().unwrap();
        // A process that has ended and was waited for.
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let left = temporary.path().join(format!("tripod-disk-{}-0", child.id()));
        std::fs::create_dir_all(left.join("mount")).unwrap();
        run("mount", &["-t", "tmpfs", "none", &text(&left.join("mount"))]).unwrap();
        let ours = temporary.path().join(directory_name(0));
        std::fs::create_dir(&ours).unwrap();
        mounts::sweep_leftovers(temporary.path());
        assert!(!left.exists() && ours.exists() && disk.data().is_dir());
    }
}
