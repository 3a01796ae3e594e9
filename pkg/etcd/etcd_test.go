package etcd

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC)

// sample returns an Etcd as gardenlet writes it.
func sample(replicas int32) *druidv1alpha1.Etcd {
	etcd := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shoot--dev--blue", Name: "etcd-main", UID: "uid-1", Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		Labels: map[string]string{"role": "main"},
	}}
	etcd.Spec = druidv1alpha1.EtcdSpec{
		Replicas: replicas,
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "etcd-statefulset", "role": "main"}},
		Labels:   map[string]string{"app": "etcd-statefulset", "role": "main", "networking.gardener.cloud/to-runtime-apiserver": "allowed"},
	}
	etcd.Spec.ETCD.ClientURLTLS = certificates("ca-etcd", "etcd-server-main")
	etcd.Spec.ETCD.ClientURLTLS.ClientTLSSecretRef.Name = "etcd-client"
	if replicas > 1 {
		etcd.Spec.ETCD.PeerURLTLS = certificates("ca-etcd-peer", "etcd-peer-server-main")
	}
	return etcd
}

func certificates(authority, server string) *druidv1alpha1.TLSConfig {
	tls := &druidv1alpha1.TLSConfig{ServerTLSSecretRef: corev1.SecretReference{Name: server}}
	tls.TLSCASecretRef.Name, tls.TLSCASecretRef.DataKey = authority, ptr.To("bundle.crt")
	return tls
}

func inputs(etcd *druidv1alpha1.Etcd, members ...lease.Member) Inputs {
	return Inputs{
		Etcd: etcd, Class: "seed", Image: "registry.example.org/etcd-member:v1", Version: "v1", Members: members, Now: noon,
		Ledger: flow.NewLedger(LedgerKey(keyOf(etcd)), map[string]flow.Entry{}),
	}
}

// healthy returns a member that has just renewed its Lease.
func healthy(ordinal int32, change ...func(*lease.Member)) lease.Member {
	member := lease.Member{
		Name: MemberName("etcd-main", ordinal), TLS: true, Renewed: noon.Add(-5 * time.Second), ClientURL: "https://x:2379",
		Holder: &lease.Holder{ID: fmt.Sprintf("a%d", ordinal), ClusterID: "c1", Leader: ordinal == 0},
	}
	for _, f := range change {
		f(&member)
	}
	return member
}

func withState(reason string) func(*lease.Member) {
	return func(member *lease.Member) { member.State = lease.State{Reason: reason, Message: "text"} }
}

func withoutTLS(member *lease.Member) { member.TLS = false }

// set returns the StatefulSet that a plan would create, with the status of a completed rollout.
func set(t *testing.T, in Inputs, change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	t.Helper()
	in.StatefulSet = nil
	result, err := Plan(in)
	if err != nil || len(result.Bundles) != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	var s *appsv1.StatefulSet
	for _, object := range result.Bundles[0].Objects {
		if found, is := object.(*appsv1.StatefulSet); is {
			s = found
		}
	}
	s.Generation, s.Status.ObservedGeneration = 1, 1
	n := *s.Spec.Replicas
	s.Status.Replicas, s.Status.ReadyReplicas, s.Status.UpdatedReplicas, s.Status.CurrentReplicas = n, n, n, n
	for _, f := range change {
		f(s)
	}
	return s
}

func TestGolden(t *testing.T) {
	for name, in := range map[string]Inputs{
		"one":   inputs(sample(1)),
		"three": inputs(sample(3)),
		"all-settings": func() Inputs {
			content, err := os.ReadFile("../../examples/fleet/druid/etcd.yaml")
			if err != nil {
				t.Fatal(err)
			}
			etcd := &druidv1alpha1.Etcd{}
			if err := yaml.Unmarshal(content, etcd); err != nil {
				t.Fatal(err)
			}
			etcd.UID = "uid-1"
			etcd.Annotations = map[string]string{AnnotationAllowEviction: ""}
			etcd.Spec.ETCD.ClientURLTLS.ClientTLSSecretRef.Name = "etcd-client"
			return inputs(etcd)
		}(),
		"without-tls": func() Inputs {
			etcd := sample(1)
			etcd.Spec.ETCD.ClientURLTLS, etcd.Spec.RunAsRoot = nil, ptr.To(true)
			return inputs(etcd)
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			rendered, held, err := flow.RenderPlan(OwnerOf(in.Etcd), result.Plan, flow.Rules{Scheme: scheme.Scheme, Version: "v1"})
			if err != nil || len(held) > 0 || len(rendered) != 1 {
				t.Fatalf("%d bundles, held %v, %v", len(rendered), held, err)
			}
			objects, err := rendered[0].Contents()
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, object := range objects {
				text, err := yaml.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n" + string(text))
			}
			path := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(want, got.Bytes()) {
				t.Errorf("%s differs (%v): run with -update and review the diff", path, err)
			}
		})
	}
}

// TestScaleReplacesNoPod checks that the Pod template does not contain the number of members, so that a new member does not
// replace other Pods.
func TestScaleReplacesNoPod(t *testing.T) {
	three := sample(3)
	one := sample(3)
	one.Spec.Replicas = 1
	_, digestOfOne, _, err := inputs(one).template()
	if err != nil {
		t.Fatal(err)
	}
	_, digestOfThree, _, err := inputs(three).template()
	if err != nil || digestOfOne != digestOfThree {
		t.Errorf("%s, %s, %v", digestOfOne, digestOfThree, err)
	}
}

func TestDue(t *testing.T) {
	observed := func(generation int64) func(*druidv1alpha1.Etcd) {
		return func(e *druidv1alpha1.Etcd) { e.Status.ObservedGeneration = &generation }
	}
	annotated := func(key, value string) func(*druidv1alpha1.Etcd) {
		return func(e *druidv1alpha1.Etcd) { metav1.SetMetaDataAnnotation(&e.ObjectMeta, key, value) }
	}
	for name, test := range map[string]struct {
		changes []func(*druidv1alpha1.Etcd)
		emitted string
		auto    bool
		want    string
	}{
		"never carried out":            {},
		"nothing has changed":          {changes: []func(*druidv1alpha1.Etcd){observed(1)}, emitted: "v1"},
		"spec has changed":             {changes: []func(*druidv1alpha1.Etcd){observed(0)}, emitted: "v1", want: "the spec has changed"},
		"spec has changed, automatic":  {changes: []func(*druidv1alpha1.Etcd){observed(0)}, emitted: "v1", auto: true},
		"requested":                    {changes: []func(*druidv1alpha1.Etcd){observed(0), annotated(AnnotationOperation, "reconcile")}, emitted: "v1"},
		"requested as etcd-druid":      {changes: []func(*druidv1alpha1.Etcd){observed(0), annotated(AnnotationDruidOperation, "reconcile")}, emitted: "v1"},
		"requested for something else": {changes: []func(*druidv1alpha1.Etcd){observed(0), annotated(AnnotationOperation, "restore")}, emitted: "v1", want: "the spec has changed"},
		"requested and suspended": {changes: []func(*druidv1alpha1.Etcd){observed(1), annotated(AnnotationOperation, "reconcile"), annotated(AnnotationSuspend, "")},
			emitted: "v1", want: "is suspended"},
		"new version of the operator": {changes: []func(*druidv1alpha1.Etcd){observed(1)}, emitted: "v0", want: "the operator has changed"},
		"bundle was deleted":          {changes: []func(*druidv1alpha1.Etcd){observed(1)}},
	} {
		etcd := sample(1)
		for _, change := range test.changes {
			change(etcd)
		}
		in := inputs(etcd)
		in.EmittedVersion, in.AutoReconcile = test.emitted, test.auto
		result, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		if (test.want == "") != (result.NotDue == "") || !strings.Contains(result.NotDue, test.want) {
			t.Errorf("%s: %q", name, result.NotDue)
		}
		held := slices.ContainsFunc(result.Waits, func(w flow.Wait) bool { return len(w.Holds) > 0 })
		if held != (test.want != "") {
			t.Errorf("%s: held %v", name, held)
		}
	}
}

func TestInvalid(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*druidv1alpha1.Etcd)
		members []lease.Member
		want    string
	}{
		"two members": {change: func(e *druidv1alpha1.Etcd) { e.Spec.Replicas = 2 }, want: "odd number"},
		"smaller than the cluster": {change: func(e *druidv1alpha1.Etcd) { e.Spec.Replicas = 1 },
			members: []lease.Member{healthy(0), healthy(1), healthy(2)}, want: "cannot be scaled down"},
		"no client certificate": {change: func(e *druidv1alpha1.Etcd) { e.Spec.ETCD.ClientURLTLS.ClientTLSSecretRef.Name = "" }, want: "clientTLSSecretRef"},
		"schedule":              {change: func(e *druidv1alpha1.Etcd) { e.Spec.ETCD.DefragmentationSchedule = ptr.To("daily") }, want: "cron"},
		"peer certificates of a running cluster": {members: []lease.Member{healthy(0, withoutTLS), healthy(1, withoutTLS), healthy(2, withoutTLS)},
			want: "peerUrlTls cannot be added"},
		"external members": {change: func(e *druidv1alpha1.Etcd) { e.Spec.ExternallyManagedMemberAddresses = []string{"10.0.0.1"} }, want: "not supported"},
		"hibernated":       {change: func(e *druidv1alpha1.Etcd) { e.Spec.Replicas = 0 }, members: []lease.Member{healthy(0), healthy(1), healthy(2)}},
	} {
		etcd := sample(3)
		if test.change != nil {
			test.change(etcd)
		}
		result, err := Plan(inputs(etcd, test.members...))
		if err != nil || (test.want == "") != (result.Invalid == "") || !strings.Contains(result.Invalid, test.want) {
			t.Errorf("%s: %q, %v", name, result.Invalid, err)
		}
		if test.want != "" && len(result.Bundles) > 0 {
			t.Errorf("%s: a bundle is emitted", name)
		}
	}
}
