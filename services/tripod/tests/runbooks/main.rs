//! The runbooks, typed as they stand: a newcomer needs no command that is not on the page.
//!
//! Every host of a page is a loopback address of its own with the page's ports, so a command is changed in two
//! ways only: the first three numbers of its addresses, and the directory that stands for a host's root. What a page
//! shows of the screen is changed back in the same ways, and must be what is printed.
//! `backup-and-restore`, `lost-quorum`, `rolling-upgrade` and `downgrade` are typed by tests beside this folder, which know their clusters from inside.
//! Numbers at the beginning of tests' names, as `n3`, are those of the walk-through of a new operator.

mod clients;
mod corrupt_node;
mod deploy;
mod disk_full;
mod every_page;
mod first_cluster;
mod grow_and_shrink;
mod page;
mod page_text;
mod parameter_server;
mod pods;
mod program;
mod replace_dead_node;
mod scale_mindspore_servers;
mod scheduled_backups;
mod screen;
mod secure_a_running_cluster;
mod site;
mod tutorial;
mod unreadable_entry;
