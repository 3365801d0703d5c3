# The Debian package in a system that has never seen Tripod: it is installed, and its own service, user and file of settings
# are the first of three nodes. Its leader is killed. Argument: the package.
set -eu
package=$1

# The addresses of /etc/tripod/server.toml, so that the file is used as it is installed.
ip link set lo up
for node in 1 2 3; do
    ip address add "10.0.0.$node/32" dev lo
done

dpkg --install "$package"
changed=$(dpkg --verify tripod)
if [ -n "$changed" ]; then
    echo "installed and not as packed: $changed" >&2
    exit 1
fi
owner=$(stat -c '%U %G %a' /var/lib/tripod)
if [ "$owner" != 'tripod tripod 700' ]; then
    echo "/var/lib/tripod belongs to: $owner" >&2
    exit 1
fi
unit=/usr/lib/systemd/system/tripod.service
if command -v systemd-analyze; then
    systemd-analyze verify --man=no "$unit"
fi
rules=/usr/lib/sysctl.d/50-tripod.conf
if command -v sysctl; then
    sysctl --load="$rules"
    grep -F "net.ipv4.ip_local_reserved_ports = $(cat /proc/sys/net/ipv4/ip_local_reserved_ports)" "$rules"
fi
tripod config check /etc/tripod/server.toml
gzip -t /usr/share/man/man1/tripod*.gz

# The file names certificates: each node has its own, and so has whoever types commands.
settings=/etc/tripod/server.toml
tripod pki init ca --cluster prod
tripod pki operator ann --ca ca --out ann
tripod pki node n1 --ca ca --host 10.0.0.1 --out /etc/tripod/tls
for node in 2 3; do
    sed -e "s/^node = 1/node = $node/" -e "/^\(client\|peer\|http\) = /s/10\.0\.0\.1/10.0.0.$node/" \
        -e "s#^data = .*#data = \"/var/lib/tripod-$node\"#" \
        -e "s#^tls-dir = .*#tls-dir = \"/etc/tripod/tls-$node\"#" "$settings" > "server-$node.toml"
    install -d -o tripod -g tripod -m 700 "/var/lib/tripod-$node"
    tripod pki node "n$node" --ca ca --host "10.0.0.$node" --out "/etc/tripod/tls-$node"
done
chown -R tripod:tripod /etc/tripod/tls /etc/tripod/tls-2 /etc/tripod/tls-3
export TRIPOD_TLS_DIR="$PWD/ann"

# As the service starts it, and as its user.
started=$(sed -n 's/^ExecStart=//p' "$unit")
user=$(sed -n 's/^User=//p' "$unit")
start() {
    # Words of a command.
    # shellcheck disable=SC2086
    env -u TRIPOD_TLS_DIR setpriv --reuid="$user" --regid="$user" --clear-groups $1 > "node-$2.log" 2>&1 &
}
start "$started" 1
node_1=$!
start "$(echo "$started" | sed "s#$settings#$PWD/server-2.toml#")" 2
node_2=$!
start "$(echo "$started" | sed "s#$settings#$PWD/server-3.toml#")" 3
node_3=$!

export TRIPOD_ENDPOINTS=10.0.0.1:7700,10.0.0.2:7700,10.0.0.3:7700
tries=0
until tripod status > status 2>&1 && grep -q 'quorum 2, 3 answer' status; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
        cat status node-*.log >&2
        exit 1
    fi
    sleep 0.2
done
tripod kv put greeting hello
leader=$(tripod status -o json | sed -n 's/.*"leader":\([0-9]*\).*/\1/p')
eval "killed=\$node_$leader"
kill -9 "$killed"
read=$(tripod kv get greeting --timeout 60)
if [ "$read" != hello ]; then
    echo "node $leader led and was killed, and then there is: $read" >&2
    exit 1
fi
tripod kv put greeting again --timeout 60

for node in "$node_1" "$node_2" "$node_3"; do
    if [ "$node" != "$killed" ]; then
        kill "$node"
        wait "$node"
    fi
done
dpkg --remove tripod
if [ -e /usr/bin/tripod ] || [ ! -e /etc/tripod/server.toml ]; then
    echo 'a package that is removed takes its program along, and leaves its settings' >&2
    exit 1
fi
dpkg --purge tripod
if [ -e /etc/tripod/server.toml ] || [ ! -e /var/lib/tripod ]; then
    echo 'a package that is purged takes its settings along, and leaves what the node knew' >&2
    exit 1
fi
