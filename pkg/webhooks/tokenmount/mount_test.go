package tokenmount

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

// accounts are ServiceAccounts by name. The value is whether Kubernetes mounts their tokens.
type accounts struct {
	client.Reader
	automount map[string]*bool
	err       error
}

func (a accounts) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	account, isAccount := object.(*corev1.ServiceAccount)
	if a.err != nil || !isAccount {
		return errors.Join(a.err)
	}
	automount, found := a.automount[key.Name]
	if !found || key.Namespace != admittest.Namespace {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, key.Name)
	}
	account.AutomountServiceAccountToken = automount
	return nil
}

var (
	cached = accounts{automount: map[string]*bool{"disabled": ptr.To(false), "enabled": ptr.To(true), "unset": nil, "default": ptr.To(false)}}
	live   = accounts{automount: map[string]*bool{"new": ptr.To(false)}}
)

func pods() admittest.Handler[*corev1.Pod] {
	return admittest.Pods(NewHandler(cached, live, Options{ExpirationSeconds: 43200}), func(pod *corev1.Pod) {
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range containers {
				containers[i].VolumeMounts = nil
			}
		}
		pod.Spec.Volumes = nil
	})
}

const (
	mount  = `{name: kube-api-access-gardener, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}`
	volume = `{name: kube-api-access-gardener, projected: {defaultMode: 420, sources: [
    {serviceAccountToken: {expirationSeconds: 43200, path: token}},
    {configMap: {items: [{key: ca.crt, path: ca.crt}], name: kube-root-ca.crt}},
    {downwardAPI: {items: [{fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}, path: namespace}]}}]}}`
)

func TestTokenRecipients(t *testing.T) {
	one := func(fields string) string {
		return "metadata: {name: a}\nspec: {" + fields + ", containers: [{name: a}]}"
	}
	mounted := func(fields string) string {
		return "metadata: {name: a}\nspec: {" + fields + ", containers: [{name: a, volumeMounts: [" + mount + "]}], volumes: [" + volume + "]}"
	}
	pods().Run(t, map[string]admittest.Case{
		"the ServiceAccount switches it off":     {Before: one("serviceAccountName: disabled"), After: mounted("serviceAccountName: disabled")},
		"a ServiceAccount that has just come":    {Before: one("serviceAccountName: new"), After: mounted("serviceAccountName: new")},
		"the Pod leaves it to Kubernetes":        {Before: one("serviceAccountName: disabled, automountServiceAccountToken: true"), After: mounted("serviceAccountName: disabled, automountServiceAccountToken: true")},
		"the Pod wants none":                     {Before: one("serviceAccountName: disabled, automountServiceAccountToken: false")},
		"no ServiceAccount":                      {Before: one(`serviceAccountName: ""`)},
		"the default ServiceAccount":             {Before: one("serviceAccountName: default")},
		"the ServiceAccount switches it on":      {Before: one("serviceAccountName: enabled")},
		"the ServiceAccount does not say it":     {Before: one("serviceAccountName: unset")},
		"a volume of Kubernetes":                 {Before: one("serviceAccountName: disabled, volumes: [{name: a}, {name: kube-api-access-x7k2p, emptyDir: {}}]")},
		"a volume of this name":                  {Before: one("serviceAccountName: disabled, volumes: [{name: kube-api-access-gardener, emptyDir: {}}]")},
		"a bad annotation, but nothing to mount": {Before: strings.Replace(one("serviceAccountName: enabled"), "name: a", "annotations: {"+AnnotationExpirationSeconds+": bad}", 1)},
		"no such ServiceAccount": {
			Before: one("serviceAccountName: missing"), Code: 403,
			Refusal: `the ServiceAccount "missing" of the Pod does not exist in namespace "the-namespace": create it first, or correct spec.serviceAccountName`,
		},
	})
	unavailable := pods()
	unavailable.Handler = NewHandler(accounts{err: errors.New("no connection")}, live, Options{})
	unavailable.Run(t, map[string]admittest.Case{
		"a ServiceAccount that cannot be read": {
			Before: one("serviceAccountName: disabled"), Code: 503,
			Refusal: `cannot determine whether the Pod needs a token: its ServiceAccount "disabled" in namespace "the-namespace" cannot be read: no connection`,
		},
		"nothing to read": {Before: one("serviceAccountName: default")},
	})
}

func TestMounts(t *testing.T) {
	pods().Run(t, map[string]admittest.Case{
		"last, into all containers and init containers": {
			Before: `
spec:
  serviceAccountName: disabled
  initContainers: [{name: a}, {name: b, volumeMounts: [{name: v, mountPath: /v}]}]
  containers: [{name: c}, {name: d, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, emptyDir: {}}]
`,
			After: `
spec:
  serviceAccountName: disabled
  initContainers: [{name: a, volumeMounts: [` + mount + `]}, {name: b, volumeMounts: [{name: v, mountPath: /v}, ` + mount + `]}]
  containers: [{name: c, volumeMounts: [` + mount + `]}, {name: d, volumeMounts: [{name: v, mountPath: /v}, ` + mount + `]}]
  volumes: [{name: v, emptyDir: {}}, ` + volume + `]
`,
		},
		"not where there is a mount": {
			Before: `
spec:
  serviceAccountName: disabled
  initContainers: [{name: a, volumeDevices: [{name: w, devicePath: /var/run/secrets/kubernetes.io/serviceaccount}]}]
  containers: [{name: b, volumeMounts: [{name: v, mountPath: /var/run/secrets/kubernetes.io/serviceaccount/}]}, {name: c}]
  volumes: [{name: v, emptyDir: {}}, {name: w}]
`,
			After: `
spec:
  serviceAccountName: disabled
  initContainers: [{name: a, volumeDevices: [{name: w, devicePath: /var/run/secrets/kubernetes.io/serviceaccount}]}]
  containers: [{name: b, volumeMounts: [{name: v, mountPath: /var/run/secrets/kubernetes.io/serviceaccount/}]}, {name: c, volumeMounts: [` + mount + `]}]
  volumes: [{name: v, emptyDir: {}}, {name: w}, ` + volume + `]
`,
		},
		"no volume that nobody uses": {Before: `
spec:
  serviceAccountName: disabled
  containers: [{name: a, volumeMounts: [{name: v, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]}]
  volumes: [{name: v, emptyDir: {}}]
`},
	})
}

func TestExpirationSeconds(t *testing.T) {
	cases := map[string]admittest.Case{}
	with := func(text, more string) string {
		return "metadata: {annotations: {" + AnnotationExpirationSeconds + ": \"" + text + "\"}}\nspec: {serviceAccountName: disabled, containers: [{name: a" + more + "}"
	}
	for _, text := range []string{"600", "43201", "4294967296", "0600"} {
		seconds := strings.TrimPrefix(text, "0")
		cases["good: "+text] = admittest.Case{
			Before: with(text, "") + "]}",
			After: with(text, ", volumeMounts: ["+mount+"]") + "], volumes: [" +
				strings.Replace(volume, "43200", seconds, 1) + "]}",
		}
	}
	const allowed = `: it must be a whole number of seconds from 600 to 4294967296, as in "43200" for 12 hours`
	for _, text := range []string{"", "599", "-1", "4294967297", "99999999999999999999", "12h", "600.5", "0x600", " 600", "top secret?"} {
		cases["bad: "+text] = admittest.Case{
			Before: with(text, "") + "]}", Code: 403,
			Refusal: `the annotation projected-token-mount.resources.gardener.cloud/expiration-seconds has the value "` + text + `"` + allowed,
		}
	}
	cases["bad, and long"] = admittest.Case{
		Before: with(strings.Repeat("9", 1000), "") + "]}", Code: 403,
		Refusal: `the annotation projected-token-mount.resources.gardener.cloud/expiration-seconds has the value "` + strings.Repeat("9", 96) + ` …"` + allowed,
	}
	pods().Run(t, cases)
}

func FuzzMount(f *testing.F) {
	handler := pods()
	f.Add([]byte(`{"metadata":{"annotations":{"projected-token-mount.resources.gardener.cloud/expiration-seconds":"700"}},"spec":{"serviceAccountName":"disabled",` +
		`"initContainers":[{"name":"a"}],"containers":[{"name":"b","volumeMounts":[{"name":"v","mountPath":"/var/run/secrets//kubernetes.io/serviceaccount/x/.."}]}],"volumes":[{"name":"v"}]}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"projected-token-mount.resources.gardener.cloud/expiration-seconds":"x"}},"spec":{"serviceAccountName":"new","containers":[null]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) { handler.Robust(t, raw) })
}
