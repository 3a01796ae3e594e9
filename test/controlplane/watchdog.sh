# Cleans up after a control plane when the process that started it is gone, however it went.
# Standard input is a pipe whose only writing end that process holds; nothing is ever written to it.
#
# $1  directory of the control plane
# $2  "remove" if that directory is to be removed, too
dir=$1
trap '' HUP INT TERM

# The programs are known by what they were started with, not by process IDs that somebody would have
# to report in time: etcd and kube-apiserver by an argument, the others by an environment variable.
processes() {
	printf '%s\n' "--data-dir=$dir/etcd" "--cert-dir=$dir/certs" "TRELLIS_CONTROL_PLANE=$dir/" |
		grep -lF -f - /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | sort -u
}

while read -r _; do :; done

attempts=50
while pids=$(processes) && [ -n "$pids" ] && [ "$attempts" -gt 0 ]; do
	kill -KILL $pids 2>/dev/null
	attempts=$((attempts - 1))
	sleep 0.1
done

[ "$2" != remove ] || rm -rf "$dir"
