package shootmaintenance

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// TestHold checks when forced updates wait. The Shoots are those of the cache.
func TestHold(t *testing.T) {
	t.Parallel()
	profile := profileWith([]string{"1.34.2 expired", "1.35.0", "1.35.1"}, []string{"1.0.0"}, corev1beta1.UpdateStrategyMajor)
	digest, err := digestOf(profile)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		expired, others, failing int
		ago                      time.Duration
		confirmed                string
		want                     string
	}{
		"a tenth":                          {10, 90, 0, time.Hour, "", ""},
		"more than a tenth":                {11, 89, 0, time.Hour, "", "11 of 100 Shoots"},
		"all":                              {100, 0, 0, time.Minute, "", "100 of 100 Shoots"},
		"two of two":                       {2, 0, 0, time.Minute, "", ""},
		"three of three":                   {3, 0, 0, time.Minute, "", "3 of 3 Shoots"},
		"a day ago":                        {100, 0, 0, 24 * time.Hour, "", ""},
		"a second less than a day ago":     {100, 0, 0, 24*time.Hour - time.Second, "", "100 of 100 Shoots"},
		"confirmed":                        {100, 0, 0, time.Hour, digest, ""},
		"other versions":                   {100, 0, 0, time.Hour, "true", "100 of 100 Shoots"},
		"two fail":                         {1, 99, 2, 48 * time.Hour, "", ""},
		"three fail":                       {1, 99, 3, 48 * time.Hour, "", "3 Shoots"},
		"three fail, the others confirmed": {1, 99, 3, time.Hour, digest, "3 Shoots"},
	} {
		var shoots []*corev1beta1.Shoot
		add := func(count int, version string, state corev1beta1.LastOperationState) {
			for range count {
				shoot := clusterWith(version, "1.0.0")
				shoot.Status.LastOperation.State = state
				shoot.Status.LastMaintenance = &corev1beta1.LastMaintenance{TriggeredTime: metav1.NewTime(now.Add(-20 * time.Hour)), Description: "automatic update"}
				if state == corev1beta1.LastOperationStateError {
					shoot.Status.LastMaintenance.Description = describe("control plane", "Kubernetes", "1.34.2", update{"1.35.0", true})
				}
				kept := &corev1beta1.Shoot{}
				Keep(kept, shoot)
				shoots = append(shoots, kept)
			}
		}
		add(test.expired, "1.34.2", corev1beta1.LastOperationStateSucceeded)
		add(test.others, "1.35.0", corev1beta1.LastOperationStateFailed) // for another reason
		add(test.failing, "1.35.1", corev1beta1.LastOperationStateError)
		last := &change{profile: "CloudProfile local", at: now.Add(-test.ago), digest: digest, confirmed: test.confirmed}
		got := last.hold(massOf(shoots, profile, now), now)
		if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	profile.Kubernetes.Versions[0].ExpirationDate = ptr.To(metav1.NewTime(now))
	if other, err := digestOf(profile); err != nil || other == digest {
		t.Errorf("another expiration date has the digest %q, %v", other, err)
	}
}

func TestChangeOf(t *testing.T) {
	t.Parallel()
	entry := func(hours int, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Time: ptr.To(metav1.NewTime(now.Add(-time.Duration(hours) * time.Hour))), Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for name, test := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   int
	}{
		"unknown":        {nil, 0},
		"versions":       {[]metav1.ManagedFieldsEntry{entry(5, "", `{"f:spec":{"f:kubernetes":{}}}`), entry(7, "", `{"f:spec":{"f:machineImages":{}}}`)}, 5},
		"images":         {[]metav1.ManagedFieldsEntry{entry(50, "", `{"f:spec":{"f:kubernetes":{}}}`), entry(7, "", `{"f:spec":{"f:machineImages":{}}}`)}, 7},
		"other fields":   {[]metav1.ManagedFieldsEntry{entry(50, "", `{"f:spec":{"f:kubernetes":{}}}`), entry(7, "", `{"f:spec":{"f:regions":{}}}`)}, 50},
		"status":         {[]metav1.ManagedFieldsEntry{entry(50, "", `{"f:spec":{"f:kubernetes":{}}}`), entry(7, "status", `{"f:spec":{"f:kubernetes":{}}}`)}, 50},
		"not readable":   {[]metav1.ManagedFieldsEntry{entry(50, "", `{"f:spec":{"f:kubernetes":{}}}`), entry(7, "", `{`)}, 7},
		"only others'":   {[]metav1.ManagedFieldsEntry{entry(7, "", `{"f:spec":{"f:regions":{}}}`)}, 100},
		"without a time": {[]metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:kubernetes":{}}}`)}}, 100},
	} {
		meta := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-100 * time.Hour)), ManagedFields: test.fields}
		if got := now.Sub(changeOf(meta, now)); got != time.Duration(test.want)*time.Hour {
			t.Errorf("%s: %s ago, want %d hours", name, got, test.want)
		}
	}
}

func TestRemoveFields(t *testing.T) {
	t.Parallel()
	spec := func(version string) *corev1beta1.ShootSpec {
		return &corev1beta1.ShootSpec{
			SecretBindingName: ptr.To("old"), CloudProfileName: ptr.To("local"), Addons: &corev1beta1.Addons{},
			DNS: &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{{SecretName: ptr.To("dns")}}},
			Kubernetes: corev1beta1.Kubernetes{
				Version:               version,
				KubeAPIServer:         &corev1beta1.KubeAPIServerConfig{EnableAnonymousAuthentication: ptr.To(false), WatchCacheSizes: &corev1beta1.WatchCacheSizes{Default: ptr.To[int32](1)}},
				KubeControllerManager: &corev1beta1.KubeControllerManagerConfig{PodEvictionTimeout: &metav1.Duration{}},
				KubeScheduler:         &corev1beta1.KubeSchedulerConfig{KubeMaxPDVols: ptr.To("1")},
				ClusterAutoscaler:     &corev1beta1.ClusterAutoscaler{MaxEmptyBulkDelete: ptr.To[int32](1)},
			},
		}
	}
	for name, test := range map[string]struct {
		before, after string
		removed       int
	}{
		"a patch": {"1.32.1", "1.32.2", 0}, "to 1.33": {"1.32.1", "1.33.0", 2}, "within 1.33": {"1.33.0", "1.33.1", 0}, "to 1.34": {"1.33.1", "1.34.0", 2},
		"to 1.35": {"1.34.1", "1.35.0", 5}, "at once": {"1.32.1", "1.35.0", 9}, "to 1.36": {"1.35.1", "1.36.0", 0}, "unknown": {"x", "y", 0},
	} {
		changed := spec(test.after)
		removed := removeFields(changed, test.before, "force-migrated-old")
		if len(removed) != test.removed {
			t.Errorf("%s: %q", name, removed)
		}
		if test.removed < 9 {
			continue
		}
		if changed.SecretBindingName != nil || *changed.CredentialsBindingName != "force-migrated-old" || changed.CloudProfile.Name != "local" ||
			changed.DNS.Providers[0].CredentialsRef.Name != "dns" || changed.Addons != nil {
			t.Errorf("%s: %+v", name, changed)
		}
	}
	if !NeedsBinding(spec("1.33.1"), spec("1.34.0")) || NeedsBinding(spec("1.34.1"), spec("1.35.0")) || NeedsBinding(&corev1beta1.ShootSpec{}, spec("1.34.0")) {
		t.Error("the need of a CredentialsBinding is wrong")
	}
}

// TestRemoveUnsupported checks feature gates and admission plugins against the versions of their components.
func TestRemoveUnsupported(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{"1.34.0": 0, "1.35.0": 2, "1.99.0": 0} {
		spec := &corev1beta1.ShootSpec{Kubernetes: corev1beta1.Kubernetes{Version: version}}
		spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
			KubernetesConfig: corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{
				"ComponentSLIs": true, "AllowOverwriteTerminationGracePeriodSeconds": true, "DisableAllocatorDualWrite": true, "Unknown": true,
			}},
			AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "AlwaysPullImages"}, {Name: "Unknown"}},
		}
		removed := removeUnsupported(spec)
		server := spec.Kubernetes.KubeAPIServer
		if len(removed) != want || len(server.AdmissionPlugins) != 2 || len(server.FeatureGates) != 4-want || !server.FeatureGates["Unknown"] {
			t.Errorf("%s: %q, left are %v", version, removed, server.FeatureGates)
		}
	}
	spec := &corev1beta1.ShootSpec{Kubernetes: corev1beta1.Kubernetes{Version: "1.34.0"}, Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{*poolWith("1.0.0")}}}
	gates := corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"ComponentSLIs": true}}
	spec.Provider.Workers[0].Kubernetes = &corev1beta1.WorkerKubernetes{Version: ptr.To("1.35.0"), Kubelet: &corev1beta1.KubeletConfig{KubernetesConfig: gates}}
	spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{KubernetesConfig: *gates.DeepCopy()}
	if removed := removeUnsupported(spec); len(removed) != 1 || len(gates.FeatureGates) != 0 {
		t.Errorf("of a pool with a version of its own: %q", removed)
	}
}

func TestBindings(t *testing.T) {
	t.Parallel()
	quotas := []corev1.ObjectReference{{Name: "quota"}}
	from := &corev1beta1.SecretBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "old"}, SecretRef: corev1.SecretReference{Name: "account"}, Quotas: quotas}
	wanted := migrated(from, "local")
	if wanted.Name != "force-migrated-old" || wanted.CredentialsRef.Namespace != "garden-dev" || wanted.CredentialsRef.Name != "account" || len(wanted.Quotas) != 1 {
		t.Errorf("got %+v", wanted)
	}
	binding := func(name string, change func(*securityv1alpha1.CredentialsBinding)) securityv1alpha1.CredentialsBinding {
		one := wanted.DeepCopy()
		one.Name = name
		if change != nil {
			change(one)
		}
		return *one
	}
	other := func(b *securityv1alpha1.CredentialsBinding) { b.CredentialsRef.Name = "other" }
	free := func(b *securityv1alpha1.CredentialsBinding) { b.Quotas = nil }
	for name, test := range map[string]struct {
		all  []securityv1alpha1.CredentialsBinding
		want string
	}{
		"none":        {nil, ""},
		"others":      {[]securityv1alpha1.CredentialsBinding{binding("a", other), binding("b", free)}, ""},
		"first":       {[]securityv1alpha1.CredentialsBinding{binding("z", nil), binding("y", nil)}, "y"},
		"made before": {[]securityv1alpha1.CredentialsBinding{binding("a", nil), binding("force-migrated-old", nil), binding("z", nil)}, "force-migrated-old"},
	} {
		if got := matching(test.all, wanted); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
