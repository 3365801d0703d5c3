# Runs a program in a root of its own: that of BASE with all that is not a part of the system empty, processes of its own,
# and FOLDER at /here, where the program begins. What is written elsewhere ends with it.
# Arguments: BASE PLACE FOLDER [NAME=VALUE...] PROGRAM [ARGUMENT...]
set -eu
base=$1 place=$2 folder=$3
shift 3

mount -t tmpfs -o mode=755 tmpfs "$place"
mkdir "$place/upper" "$place/inner" "$place/system"
new=$place/system
mount -t overlay -o "lowerdir=$base,upperdir=$place/upper,workdir=$place/inner" overlay "$new"

# How this machine finds a package index, and whom it trusts.
for file in etc/resolv.conf etc/pip.conf etc/ssl/certs/ca-certificates.crt; do
    if [ -e "/$file" ] && [ "$base" != / ]; then
        mkdir -p "$new/${file%/*}"
        rm -f "$new/$file"
        cp -L "/$file" "$new/$file"
    fi
done

# A machine knows its own name, which libraries look up.
echo here > /proc/sys/kernel/hostname
printf '127.0.0.1 localhost\n127.0.1.1 here\n' > "$new/etc/hosts"

for entry in "$new"/* "$new/usr/local"; do
    if [ -d "$entry" ] && [ ! -L "$entry" ]; then
        case ${entry#"$new"/} in
            bin | sbin | lib | lib32 | lib64 | libx32 | usr | etc | var | dev | proc | sys) ;;
            tmp) mount -t tmpfs -o mode=1777 tmpfs "$entry" ;;
            *) mount -t tmpfs -o mode=755 tmpfs "$entry" ;;
        esac
    fi
done
mkdir -p "$new/here"
mount --bind "$folder" "$new/here"
mount --rbind /dev "$new/dev"
mount --rbind /sys "$new/sys"
mount -t proc proc "$new/proc"

exec chroot "$new" /usr/bin/env -i -C /here "$@"
