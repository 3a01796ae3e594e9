package operatingsystemconfig

import (
	"strings"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// Paths of the authorities that nodes trust (Gardener).
const (
	pathRootCertificates       = "/var/lib/ca-certificates-local/ROOTcerts.crt"
	pathRootCertificatesAnchor = "/etc/pki/trust/anchors/ROOTcerts.pem"
	pathRootCertificatesScript = "/var/lib/ssl/update-local-ca-certificates.sh"
)

// rootCertificates makes nodes trust the authorities of the cluster and those of the CloudProfile and the pool. The two paths and the
// two programs are those of different distributions.
func rootCertificates(values Values) (content, error) {
	script := `#!/bin/bash
set -o errexit -o nounset

if [[ -x /usr/sbin/update-ca-certificates ]]; then
  mkdir -p /usr/local/share/ca-certificates
  if [[ -f /etc/debian_version ]]; then
    ln -sf ` + pathRootCertificates + ` /usr/local/share/ca-certificates/ROOTcerts.crt
  fi
  /usr/sbin/update-ca-certificates --fresh
elif [[ -x /usr/bin/update-ca-trust ]]; then
  mkdir -p /etc/pki/ca-trust/source/anchors
  ln -sf ` + pathRootCertificates + ` /etc/pki/ca-trust/source/anchors/ROOTcerts.crt
  /usr/bin/update-ca-trust
fi
`
	unit := `[Unit]
Description=Updates the certificates that this node trusts.
After=systemd-tmpfiles-setup.service clean-ca-certificates.service
Before=sysinit.target kubelet.service
ConditionPathIsReadWrite=/etc/ssl/certs
ConditionPathIsReadWrite=/var/lib/ca-certificates-local
ConditionPathExists=!/var/lib/kubelet/kubeconfig-real

[Service]
Type=oneshot
ExecStart=` + pathRootCertificatesScript + `
ExecStartPost=/bin/systemctl restart containerd.service

[Install]
WantedBy=multi-user.target
`
	bundle := joinPEM(values.ExtraCAs, values.CABundle)
	return content{
		units: []extensionsv1alpha1.Unit{
			startedUnit("updatecacerts.service", unit, pathRootCertificatesScript, pathRootCertificates, pathRootCertificatesAnchor),
		},
		files: []extensionsv1alpha1.File{
			textFile(pathRootCertificatesScript, 0o744, script),
			textFile(pathRootCertificates, modeFile, bundle),
			textFile(pathRootCertificatesAnchor, modeFile, bundle),
		},
	}, nil
}

// joinPEM joins certificates, each with one line break at its end.
func joinPEM(all ...string) string {
	var joined strings.Builder
	for _, one := range all {
		if one = strings.TrimSpace(one); one != "" {
			joined.WriteString(one + "\n")
		}
	}
	return joined.String()
}
