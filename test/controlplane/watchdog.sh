# Cleans up after a control plane when the process that started it has ended for any reason.
# Standard input is a pipe whose only write end that process holds. Nothing is ever written to it.
#
# $1  directory of the control plane
# $2  "remove" to also remove that directory
dir=$1
trap '' HUP INT TERM

# The programs are identified by their arguments and environment, not by process IDs, which would have
# to be reported in time: etcd and kube-apiserver by an argument, the others by an environment variable.
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
