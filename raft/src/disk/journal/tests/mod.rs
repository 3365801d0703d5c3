//! The journal against simulated disks that crash, lose and tear, and against real files and sled.

mod compat;
mod crash;
mod damage;
mod golden;
mod home_damage;
mod kept_home;
mod machine;
mod oracle;
mod real;
mod space;
