package extension

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

func TestReport(t *testing.T) {
	o := object("", last(update, processing))
	report(o, update, Result{}, WithCodes(errors.New("no disks"), corev1beta1.ErrorInfraResourcesDepleted), now)
	status := o.Status.DefaultStatus
	if status.LastOperation.State != failing || status.LastOperation.Progress != 50 || status.LastOperation.Description != "No disks" ||
		status.LastError == nil || !slices.Equal(status.LastError.Codes, []corev1beta1.ErrorCode{corev1beta1.ErrorInfraResourcesDepleted}) {
		t.Errorf("failed: %+v, %+v", status.LastOperation, status.LastError)
	}

	// The same error at a later time writes nothing.
	again := o.DeepCopy()
	report(again, update, Result{}, WithCodes(errors.New("no disks"), corev1beta1.ErrorInfraResourcesDepleted), now.Add(time.Minute))
	if patch, err := statusPatch(o, again); err != nil || patch != nil {
		t.Errorf("the same error is written again: %s, %v", patch, err)
	}

	report(o, update, Wait(time.Second, "the network is not %s", "ready"), nil, now.Add(time.Minute))
	if o.Status.LastError != nil || o.Status.LastOperation.State != processing || o.Status.LastOperation.Description != "The network is not ready" {
		t.Errorf("waiting: %+v, %+v", o.Status.LastOperation, o.Status.LastError)
	}
	report(o, update, Done(), nil, now.Add(time.Hour))
	if !finished(o.Status.LastOperation) || o.Status.LastOperation.Progress != 100 || !o.Status.LastOperation.LastUpdateTime.Time.Equal(now.Add(time.Hour)) {
		t.Errorf("finished: %+v", o.Status.LastOperation)
	}
}

// TestStatusPatch checks that only the status is written, and no fields that a user or another controller changes.
func TestStatusPatch(t *testing.T) {
	live := object("", last(update, processing))
	changed := live.DeepCopy()
	changed.Spec.Region, changed.Labels = "elsewhere", map[string]string{"a": "b"}
	if patch, err := statusPatch(live, changed); err != nil || patch != nil {
		t.Errorf("%s, %v", patch, err)
	}
	if err := SetState(changed, map[string]int{"subnets": 3}); err != nil {
		t.Fatal(err)
	}
	if patch, err := statusPatch(live, changed); err != nil || string(patch) != `{"status":{"state":{"subnets":3}}}` {
		t.Errorf("%s, %v", patch, err)
	}
}

func TestDescriptionIsLimited(t *testing.T) {
	if text := description(strings.Repeat("ä", maxDescription)); len(text) > maxDescription || !strings.HasPrefix(text, "Ä") {
		t.Errorf("%d bytes, beginning with %.2s", len(text), text)
	}
	if description("") != "" {
		t.Error("an empty text is changed")
	}
}

func TestCodes(t *testing.T) {
	coded, nodes := WithCodes(errors.New("a"), corev1beta1.ErrorInfraDependencies), schema.GroupResource{Resource: "nodes"}
	for name, test := range map[string]struct {
		err  error
		want []corev1beta1.ErrorCode
	}{
		"none":                               {nil, nil},
		"added":                              {coded, []corev1beta1.ErrorCode{corev1beta1.ErrorInfraDependencies}},
		"wrapped":                            {fmt.Errorf("b: %w", coded), []corev1beta1.ErrorCode{corev1beta1.ErrorInfraDependencies}},
		"joined":                             {errors.Join(ConfigurationProblem(errors.New("c")), fmt.Errorf("b: %w", coded)), []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem, corev1beta1.ErrorInfraDependencies}},
		"from the text":                      {errors.New("the API answers AuthFailure"), []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthenticated}},
		"unknown":                            {errors.New("something"), nil},
		"none, whatever the text is":         {WithCodes(errors.New("Unauthorized")), nil},
		"a Kubernetes API, token":            {fmt.Errorf("list: %w", apierrors.NewUnauthorized("Unauthorized")), nil},
		"a Kubernetes API, rights":           {apierrors.NewForbidden(nodes, "a", errors.New("not authorized")), nil},
		"a Kubernetes API, object":           {apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "a", nil), []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}},
		"a Kubernetes API, and a cloud":      {fmt.Errorf("x: %w", errors.Join(apierrors.NewUnauthorized("Unauthorized"), errors.New("AuthFailure"))), []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthenticated}},
		"a cloud, two errors without an API": {fmt.Errorf("x: %w", errors.Join(errors.New("something"), errors.New("access denied"))), []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthorized}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Codes(test.err); !slices.Equal(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
	if WithCodes(nil, corev1beta1.ErrorInfraDependencies) != nil || ConfigurationProblem(nil) != nil {
		t.Error("nil became an error")
	}
}

// TestConfigurationError checks that validations that could not run are retried, and that invalid configurations are reported to
// users.
func TestConfigurationError(t *testing.T) {
	path := field.NewPath("spec")
	unavailable := configurationError(field.ErrorList{field.InternalError(path, errors.New("no connection"))})
	if unavailable == nil || isFinal(Codes(unavailable)) {
		t.Errorf("%v has %v", unavailable, Codes(unavailable))
	}
	wrong := configurationError(field.ErrorList{field.InternalError(path, errors.New("no connection")), field.Invalid(path, "a", "no network")})
	if !isFinal(Codes(wrong)) {
		t.Errorf("%v has %v", wrong, Codes(wrong))
	}
	if configurationError(nil) != nil {
		t.Error("a valid configuration is an error")
	}
}

// clusterOf returns a Cluster whose Shoot was changed by change.
func clusterOf(t *testing.T, change func(*corev1beta1.Shoot)) *extensionsv1alpha1.Cluster {
	t.Helper()
	shoot := &corev1beta1.Shoot{TypeMeta: metav1.TypeMeta{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot"}}
	change(shoot)
	raw, err := json.Marshal(shoot)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--blue", Annotations: map[string]string{annotationGenericKubeconfig: "kubeconfig"}}}
	cluster.Spec.CloudProfile.Raw, cluster.Spec.Shoot.Raw = []byte(`{"fromTheFuture":1}`), raw
	return cluster
}

func TestCluster(t *testing.T) {
	decode := func(change func(*corev1beta1.Shoot)) *Cluster {
		t.Helper()
		decoded, err := DecodeCluster(clusterOf(t, change))
		if err != nil {
			t.Fatal(err)
		}
		return decoded
	}
	if c := decode(func(*corev1beta1.Shoot) {}); c.Seed != nil || c.Hibernated() || c.Failed() || c.Ignored() || c.ForceDeletion() || c.GenericKubeconfigName != "kubeconfig" {
		t.Errorf("%+v", c)
	}
	failed := func(shoot *corev1beta1.Shoot) {
		shoot.Generation, shoot.Status.ObservedGeneration = 2, 2
		shoot.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateFailed}
	}
	if !decode(failed).Failed() || decode(func(shoot *corev1beta1.Shoot) { failed(shoot); shoot.Generation = 3 }).Failed() {
		t.Error("a Shoot has failed if its last generation has")
	}
	if !decode(func(shoot *corev1beta1.Shoot) {
		shoot.Annotations = map[string]string{constants.AnnotationShootIgnore: "true"}
	}).Ignored() {
		t.Error("an ignored Shoot is not recognized")
	}
	if !decode(func(shoot *corev1beta1.Shoot) { shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)} }).Hibernated() {
		t.Error("a hibernated Shoot is not recognized")
	}
	wrong := clusterOf(t, func(*corev1beta1.Shoot) {})
	wrong.Spec.Seed = &runtime.RawExtension{Raw: wrong.Spec.Shoot.Raw}
	if _, err := DecodeCluster(wrong); err == nil || !strings.Contains(err.Error(), "spec.seed of Cluster shoot--dev--blue") {
		t.Errorf("for a Shoot in place of a Seed: %v", err)
	}
}

func TestClusterName(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "shoot--dev--blue", Name: "shoot--dev--blue--0d0a4b2c-90d0"}
	inGarden := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "seed-ingress"}}
	seed := &extensionsv1alpha1.Extension{ObjectMeta: named}
	seed.Spec.Class = new(extensionsv1alpha1.ExtensionClassSeed)
	for _, test := range []struct {
		object extensionsv1alpha1.Object
		want   string
	}{
		{&extensionsv1alpha1.Worker{ObjectMeta: named}, "shoot--dev--blue"}, {&extensionsv1alpha1.BackupBucket{ObjectMeta: named}, ""},
		{&extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "source-shoot--dev--blue--0d0a"}}, "shoot--dev--blue"},
		{&extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "alone"}}, "alone"}, {inGarden, ""}, {seed, ""},
	} {
		if got := clusterName(test.object); got != test.want {
			t.Errorf("%T %s: %q, want %q", test.object, test.object.GetName(), got, test.want)
		}
	}
}
