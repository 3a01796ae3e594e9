package seccompprofile

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

// erase removes the profile. It keeps a security context, because the handler adds an empty one to set the profile.
func erase(pod *corev1.Pod) {
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	pod.Spec.SecurityContext.SeccompProfile = nil
}

func TestProfile(t *testing.T) {
	admittest.Pods(NewHandler(), erase).Run(t, map[string]admittest.Case{
		"no security context": {
			Before: `spec: {containers: [{name: a}]}`,
			After:  `spec: {containers: [{name: a}], securityContext: {seccompProfile: {type: RuntimeDefault}}}`,
		},
		"no profile": {
			Before: `spec: {containers: [], securityContext: {runAsUser: 1}}`,
			After:  `spec: {containers: [], securityContext: {runAsUser: 1, seccompProfile: {type: RuntimeDefault}}}`,
		},
		"a profile without a type": {
			Before: `spec: {containers: [], securityContext: {seccompProfile: {}}}`,
			After:  `spec: {containers: [], securityContext: {seccompProfile: {type: RuntimeDefault}}}`,
		},
		"unconfined":      {Before: `spec: {containers: [], securityContext: {seccompProfile: {type: Unconfined}}}`},
		"a local profile": {Before: `spec: {containers: [], securityContext: {seccompProfile: {type: Localhost, localhostProfile: a.json}}}`},
		"the default":     {Before: `spec: {containers: [], securityContext: {seccompProfile: {type: RuntimeDefault}}}`},
		"containers are not looked at": {
			Before: `spec: {containers: [{name: a, securityContext: {seccompProfile: {type: Unconfined}}}]}`,
			After: `
spec:
  containers: [{name: a, securityContext: {seccompProfile: {type: Unconfined}}}]
  securityContext: {seccompProfile: {type: RuntimeDefault}}
`,
		},
		"Windows": {Before: `spec: {os: {name: windows}, containers: []}`},
		"Linux": {
			Before: `spec: {os: {name: linux}, containers: []}`,
			After:  `spec: {os: {name: linux}, containers: [], securityContext: {seccompProfile: {type: RuntimeDefault}}}`,
		},
	})
}

func FuzzProfile(f *testing.F) {
	handler := admittest.Pods(NewHandler(), erase)
	f.Add([]byte(`{"spec":{"containers":[{"name":"a"}],"securityContext":{"runAsUser":1,"seccompProfile":{"localhostProfile":"a"}}}}`))
	f.Add([]byte(`{"spec":{"os":{"name":"windows"}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) { handler.Robust(t, raw) })
}
