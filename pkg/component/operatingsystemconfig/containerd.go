package operatingsystemconfig

import (
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// containerd restarts the container runtime when the authorities change that it trusts for registries, and rotates the logs of
// containers that kubelet does not rotate. The operating system installs containerd.
func containerd(Values) (content, error) {
	const logrotate = "/etc/systemd/containerd.conf"
	service := `[Unit]
Description=Rotates logs of containers.
ConditionFileIsExecutable=/usr/sbin/logrotate

[Service]
Type=oneshot
ExecStart=/usr/sbin/logrotate -s /var/lib/containerd-logrotate.status ` + logrotate + `
`
	timer := `[Unit]
Description=Rotates logs of containers every 10 minutes.

[Timer]
OnCalendar=*:0/10
AccuracySec=1m
Persistent=true

[Install]
WantedBy=multi-user.target
`
	config := `/var/log/pods/*/*/*.log {
    rotate 14
    copytruncate
    missingok
    notifempty
    compress
    daily
    dateext
    dateformat -%Y%m%d-%s
    create 0644 root root
}
`
	rotation := startedUnit("containerd-logrotate.timer", timer)
	return content{
		units: []extensionsv1alpha1.Unit{
			{Name: paths.ContainerdUnit, FilePaths: []string{pathRootCertificates}},
			{Name: "containerd-logrotate.service", Content: &service, FilePaths: []string{logrotate}},
			rotation,
		},
		files: []extensionsv1alpha1.File{textFile(logrotate, modeFile, config)},
	}, nil
}

// journald limits how much of the journal nodes keep.
func journald(Values) (content, error) {
	return content{files: []extensionsv1alpha1.File{
		textFile("/etc/systemd/journald.conf", modeFile, "[Journal]\nMaxFileSec=24h\nMaxRetentionSec=14day\n"),
	}}, nil
}
