package resourcemanager

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Namespace: "garden", Image: "resource-manager:v1", Replicas: 2,
		ServerCertificate: "gardener-resource-manager-server-12345678", CABundle: []byte("bundle"),
	}
}

func withSettings(v *Values) {
	v.Replicas, v.VerticalPodAutoscaler = 1, true
	v.Seed = SeedSettings{
		LogLevel: "debug", LogFormat: "text", SeccompProfile: true,
		NodeToleration:  &gardenletv1alpha1.NodeToleration{DefaultNotReadyTolerationSeconds: ptr.To[int64](60)},
		NetworkPolicies: []metav1.LabelSelector{{MatchLabels: map[string]string{"team": "a"}}},
	}
}

func TestObjects(t *testing.T) {
	for name, change := range map[string]func(*Values){"seed": func(*Values) {}, "seed-with-settings": withSettings} {
		t.Run(name, func(t *testing.T) {
			v := values()
			change(&v)
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, objects)
		})
	}
}

// TestConfiguration checks that the program reads the values that were written, although the file omits defaults.
func TestConfiguration(t *testing.T) {
	for name, change := range map[string]func(*Values){"defaults": func(*Values) {}, "settings": withSettings} {
		v := values()
		change(&v)
		config := seedConfiguration(v)
		text, err := configurationText(config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := configv1alpha1.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got.TypeMeta = metav1.TypeMeta{}
		if !reflect.DeepEqual(got, config) {
			t.Errorf("%s: the program read\n%+v\nwant\n%+v", name, got, config)
		}
	}
}

// TestLease checks the name of the Lease, because a flow watches it by the name of the component.
func TestLease(t *testing.T) {
	lease := seedConfiguration(values()).LeaderElection
	if lease.ResourceName != Name || lease.ResourceNamespace != "garden" {
		t.Errorf("the leader election uses the Lease %s/%s", lease.ResourceNamespace, lease.ResourceName)
	}
}

func TestInvalidConfiguration(t *testing.T) {
	v := values()
	v.Seed.LogLevel = "loud"
	if _, err := Objects(v); err == nil || !strings.Contains(err.Error(), "logLevel") {
		t.Errorf("got the error %v", err)
	}
}

// TestRegisteredWebhooks checks that the webhooks of a seed are the same as those of gardener-resource-manager.
func TestRegisteredWebhooks(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range objects {
		switch object := object.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for _, webhook := range object.Webhooks {
				got = append(got, webhook.Name)
			}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for _, webhook := range object.Webhooks {
				got = append(got, webhook.Name)
			}
		}
	}
	for i := range got {
		got[i] = strings.TrimSuffix(got[i], ".resources.gardener.cloud")
	}
	slices.Sort(got)
	want := []string{
		"cr-deletion-protection", "crd-deletion-protection", "high-availability-config", "pod-kube-apiserver-load-balancing",
		"pod-topology-spread-constraints", "projected-token-mount",
	}
	for _, kind := range []string{
		"backupbuckets", "backupentries", "bastions", "containerruntimes", "controlplanes", "dnsrecords", "etcds", "extensions", "infrastructures",
		"networks", "operatingsystemconfigs", "selfhostedshootexposures", "workers",
	} {
		want = append(want, "validation.extensions."+kind)
	}
	want = append(want, "vpa-in-place-updates")
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestChangedConfiguration checks that a changed setting replaces the Pods, because it results in a ConfigMap with another
// name.
func TestChangedConfiguration(t *testing.T) {
	names := map[string]bool{}
	for _, level := range []string{"info", "debug"} {
		v := values()
		v.Seed.LogLevel = level
		objects, err := Objects(v)
		if err != nil {
			t.Fatal(err)
		}
		configMap := ""
		for _, object := range objects {
			if _, isConfigMap := object.(*corev1.ConfigMap); isConfigMap {
				configMap = object.GetName()
			}
		}
		for _, object := range objects {
			if deployment, isDeployment := object.(*appsv1.Deployment); isDeployment {
				if got := deployment.Spec.Template.Spec.Volumes[0].ConfigMap.Name; got != configMap || configMap == "" {
					t.Errorf("the Pods mount the ConfigMap %q, but the component has %q", got, configMap)
				}
			}
		}
		names[configMap] = true
	}
	if len(names) != 2 {
		t.Errorf("two different settings result in the ConfigMaps %v", names)
	}
}

// TestShootObjects tests the resource-manager of a shoot without workers.
func TestShootObjects(t *testing.T) {
	v := ShootValues{
		Namespace: "shoot--dev--one", Image: "resource-manager:v1", Replicas: 2, ClusterID: "seed-1", LogLevel: "info", LogFormat: "json",
		Kubeconfig: "generic-token-kubeconfig-1", VerticalPodAutoscaler: true,
	}
	objects, err := ShootObjects(v)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "shoot", append(objects, ShootAccessSecret(v.Namespace)))
	golden.Check(t, "shoot-rights", ShootRights())
}

// TestShootObjectsWithWorkers tests what the resource-manager of a shoot with workers has in addition.
func TestShootObjectsWithWorkers(t *testing.T) {
	for name, settings := range map[string]NodeSettings{
		"shoot-nodes": {ServerCertificate: "gardener-resource-manager-server-1", Host: "api.one.dev.internal.example.org", MaxDelay: 5 * time.Minute, WithSelectors: true},
		"shoot-nodes-everything": {
			ServerCertificate: "gardener-resource-manager-server-1", Host: "api.one.dev.internal.example.org", MaxDelay: 30 * time.Minute,
			Scheduler: "bin-packing-scheduler", WithoutTemplateKeys: true,
			NodeToleration: &gardenletv1alpha1.NodeToleration{DefaultNotReadyTolerationSeconds: ptr.To[int64](60)},
			Tolerations:    []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		},
	} {
		v := ShootValues{
			Namespace: "shoot--dev--one", Image: "resource-manager:v1", Replicas: 2, ClusterID: "seed-1", LogLevel: "info", LogFormat: "json",
			Kubeconfig: "generic-token-kubeconfig-1", Nodes: &settings,
		}
		if !shootConfiguration(v).Webhooks.KubernetesServiceHost.Enabled {
			t.Errorf("%s: Pods do not get the host name of the API server", name)
		}
		without := v
		without.Nodes = &NodeSettings{}
		if shootConfiguration(without).Webhooks.KubernetesServiceHost.Enabled {
			t.Errorf("%s: Pods get an empty host name", name)
		}
		objects, err := ShootObjects(v)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, objects)
		golden.Check(t, name+"-registrations", NodeRegistrations(v, []byte("bundle")))
	}
}

func TestSystemTolerations(t *testing.T) {
	taint := func(key, value string) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	got := SystemTolerations([]corev1beta1.Worker{
		{Taints: []corev1.Taint{taint("b", "1"), taint("a", "")}},
		{Taints: []corev1.Taint{taint("b", "1"), taint("b", "2")}, SystemComponents: &corev1beta1.WorkerSystemComponents{Allow: true}},
		{Taints: []corev1.Taint{taint("c", "")}, SystemComponents: &corev1beta1.WorkerSystemComponents{}},
	})
	want := []corev1.Toleration{
		{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: "b", Operator: corev1.TolerationOpEqual, Value: "1", Effect: corev1.TaintEffectNoSchedule},
		{Key: "b", Operator: corev1.TolerationOpEqual, Value: "2", Effect: corev1.TaintEffectNoSchedule},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
