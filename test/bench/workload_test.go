package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

var small = workload{set: "x", class: "limit", resources: 3, objects: 10, namespaces: 2}

func TestWorkload(t *testing.T) {
	if got := small.key(2); got != (types.NamespacedName{Namespace: "bench-x-0", Name: "mr-00002"}) {
		t.Errorf("got %s", got)
	}
	want := map[string]int{
		"ConfigMap": 12, "Secret": 3, "ServiceAccount": 3, "Role": 3, "RoleBinding": 3, "Service": 3, "Deployment": 3,
	}
	for _, kind := range distinctKinds() {
		if got := small.count(kind.name); got != want[kind.name] {
			t.Errorf("got %d of %s, want %d", got, kind.name, want[kind.name])
		}
	}
	configMaps := small.configMaps()
	if len(configMaps) != 12 || configMaps[11] != (types.NamespacedName{Namespace: "bench-x-0", Name: "mr-00002-003"}) {
		t.Errorf("got %s", configMaps)
	}
}

func TestEveryRevisionChangesEveryObject(t *testing.T) {
	for j := range small.objects {
		var contents []string
		for _, revision := range []int{1, 2, 3} {
			content := small.object(0, j, revision).content
			delete(content, "metadata")
			encoded, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			contents = append(contents, string(encoded))
		}
		if contents[0] == contents[1] || contents[1] == contents[2] {
			t.Errorf("a revision does not change object %d: %s", j, contents)
		}
	}
}

func TestSecretHoldsEveryObject(t *testing.T) {
	secret, err := small.secret(0, 1)
	if err != nil || len(secret.Data) != small.objects {
		t.Fatalf("got %v, %v", slices.Sorted(maps.Keys(secret.Data)), err)
	}
	if got := string(secret.Data["009-deployments.yaml"]); !strings.Contains(got, "kind: Deployment") || !strings.Contains(got, "replicas: 0") {
		t.Errorf("got %s", got)
	}
}

func TestBareClientSendsTheLeast(t *testing.T) {
	for revision, want := range map[int]string{
		1: "managedresources managedresources/status " + kindsOfTen + " managedresources/status",
		2: kindsOfTen + " managedresources/status",
	} {
		patches, err := patchesFor(small, 0, revision)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, patch := range patches {
			got = append(got, strings.Join(append([]string{patch.resource.Resource}, patch.subresources...), "/"))
			if !json.Valid(patch.body) {
				t.Errorf("not JSON: %s", patch.body)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("revision %d: got %s, want %s", revision, text, want)
		}
		deployment := patches[len(patches)-2].body
		if !bytes.Contains(deployment, []byte(resourcesv1alpha1.AnnotationOrigin)) || !bytes.Contains(deployment, []byte(resourcesv1alpha1.LabelManagedBy)) {
			t.Errorf("the Deployment is not marked as managed: %s", deployment)
		}
	}
}

const kindsOfTen = "configmaps configmaps configmaps configmaps secrets serviceaccounts roles rolebindings services deployments"

func TestApplied(t *testing.T) {
	follower := &follower{checksums: map[types.NamespacedName]string{small.key(0): "old"}}
	for name, test := range map[string]struct {
		checksum *string
		status   resourcesv1alpha1.ConditionStatus
		observed int64
		want     bool
	}{
		"new":                   {nil, "", 0, false},
		"still the old":         {ptr.To("old"), resourcesv1alpha1.ConditionTrue, 1, false},
		"applied":               {ptr.To("new"), resourcesv1alpha1.ConditionTrue, 1, true},
		"failed":                {ptr.To("new"), resourcesv1alpha1.ConditionFalse, 1, false},
		"of an older spec":      {ptr.To("new"), resourcesv1alpha1.ConditionTrue, 0, false},
		"without the condition": {ptr.To("new"), "", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			mr := small.managedResource(0)
			mr.Generation, mr.Status.ObservedGeneration, mr.Status.SecretsDataChecksum = 1, test.observed, test.checksum
			if test.status != "" {
				mr.Status.Conditions = []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Status: test.status}}
			}
			if got := applied(follower, watch.Modified, mr); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	opts, err := parseOptions([]string{"--managed-resources", "30", "--phases", "limit,rest"}, io.Discard)
	if err != nil || opts.total() != 300 || !opts.wants(phaseRest) || opts.wants(phaseDrift, phaseDelete) {
		t.Errorf("got %+v, %v", opts, err)
	}
	for _, args := range [][]string{
		{"--phases", "limit,nap"}, {"--objects", "0"}, {"-o", "xml"}, {"surplus"}, {"--unknown"}, {"--rest", "long"},
	} {
		if _, err := parseOptions(args, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
