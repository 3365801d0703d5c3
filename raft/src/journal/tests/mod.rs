//! The journal against simulated disks that crash, lose and tear, and against real files and sled.

mod compat;
mod crash;
mod damage;
mod dice;
mod fuse;
mod home_damage;
mod machine;
mod oracle;
mod real;
mod sim_files;
mod sim_home;
mod space;
