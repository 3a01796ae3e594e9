package seedauthorizer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
)

// paths is a graph in which Seed a owns Shoot garden-dev/one, protects Secret garden/backup, and reads CloudProfile local.
func paths() *graph.Graph {
	g := graph.New()
	seed, shoot := graph.SeedVertex("a"), graph.ShootVertex("garden-dev", "one")
	g.Set(shoot, []graph.Edge{
		{From: shoot, To: seed, Access: graph.Own},
		{From: graph.Vertex{Kind: graph.CloudProfile, Name: "local"}, To: shoot, Access: graph.Read},
		{From: graph.Vertex{Kind: graph.WorkloadIdentity, Namespace: "garden-dev", Name: "id"}, To: shoot, Access: graph.Read},
		{From: graph.Vertex{Kind: graph.Secret, Namespace: "garden-dev", Name: "named"}, To: shoot, Access: graph.Read},
	})
	g.Set(seed, []graph.Edge{{From: graph.Vertex{Kind: graph.Secret, Namespace: "garden", Name: "backup"}, To: seed, Access: graph.Protect}})
	other := graph.ShootVertex("garden-dev", "other")
	g.Set(other, []graph.Edge{{From: other, To: graph.SeedVertex("b"), Access: graph.Own}})
	return g
}

// ask decides about "verb resource[.group][/subresource] [namespace/]name [selectors]" of a user.
func ask(t *testing.T, user string, groups []string, request string, gone bool) bool {
	t.Helper()
	words := strings.Fields(request)
	attributes := &authorizationv1.ResourceAttributes{Verb: words[0]}
	resource, sub, _ := strings.Cut(words[1], "/")
	attributes.Subresource = sub
	attributes.Resource, attributes.Group, _ = strings.Cut(resource, ".")
	if namespace, name, found := strings.Cut(words[2], "/"); found {
		attributes.Namespace, attributes.Name = namespace, name
	} else {
		attributes.Name = strings.TrimPrefix(words[2], "-")
	}
	for _, word := range words[3:] {
		kind, rest, _ := strings.Cut(word, ":")
		key, values, in := strings.Cut(rest, "=")
		operator := "In"
		if strings.HasSuffix(key, "!") {
			key, operator = strings.TrimSuffix(key, "!"), "NotIn"
		}
		if !in {
			operator = "Exists"
		}
		if kind == "field" {
			attributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
				{Key: key, Operator: metav1.FieldSelectorOperator(operator), Values: strings.Split(values, ",")},
			}}
		} else {
			attributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
				{Key: key, Operator: metav1.LabelSelectorOperator(operator), Values: strings.Split(values, ",")},
			}}
		}
	}
	absent := func(context.Context, schema.GroupResource, graph.Vertex) (bool, error) { return gone, nil }
	decision, err := Decide(t.Context(), paths(), absent, &authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return decision.Allowed
}

func TestDecide(t *testing.T) {
	seeds := []string{"gardener.cloud:system:seeds"}
	const gardenlet, label = "gardener.cloud:system:seed:a", "label:name.seed.gardener.cloud/"
	for request, want := range map[string]bool{
		"get shoots.core.gardener.cloud garden-dev/one":                                 true,
		"get shoots.core.gardener.cloud garden-dev/other":                               false,
		"patch shoots.core.gardener.cloud/status garden-dev/one":                        true,
		"patch shoots.core.gardener.cloud/binding garden-dev/one":                       false,
		"delete shoots.core.gardener.cloud garden-dev/one":                              false,
		"list shoots.core.gardener.cloud -":                                             false,
		"list shoots.core.gardener.cloud - " + label + "a=true":                         true,
		"watch shoots.core.gardener.cloud - " + label + "a=true":                        true,
		"list shoots.core.gardener.cloud - " + label + "a=true,false":                   false,
		"list shoots.core.gardener.cloud - " + label + "b=true":                         false,
		"list shoots.core.gardener.cloud - " + label + "b!=true":                        false,
		"list shoots.core.gardener.cloud - " + label + "a":                              false,
		"list controllerinstallations.core.gardener.cloud - field:spec.seedRef.name=a":  true,
		"list controllerinstallations.core.gardener.cloud - field:spec.seedRef.name!=b": false,
		"deletecollection shoots.core.gardener.cloud - " + label + "a=true":             false,
		"list backupentries.core.gardener.cloud - " + label + "a=true":                  true,
		"list backupentries.core.gardener.cloud - " + label + "b=true":                  false,
		"watch backupentries.core.gardener.cloud - field:spec.seedName=a":               true,
		"watch backupentries.core.gardener.cloud - field:spec.seedName=b":               false,
		"deletecollection backupentries.core.gardener.cloud - field:spec.seedName=a":    false,
		"get cloudprofiles.core.gardener.cloud local":                                   true,
		"get cloudprofiles.core.gardener.cloud other":                                   false,
		"update cloudprofiles.core.gardener.cloud local":                                false,
		"get secrets garden/backup":                                                     true,
		"list secrets garden/backup":                                                    true,
		"patch secrets garden/backup":                                                   true,
		"delete secrets garden/backup":                                                  false,
		"get secrets garden-dev/named":                                                  true,
		"patch secrets garden-dev/named":                                                false,
		"list secrets garden/":                                                          false,
		"list secrets seed-a/":                                                          true,
		"list secrets seed-b/":                                                          false,
		"create secrets kube-system/":                                                   true,
		"create serviceaccounts/token seed-a/extension-x":                               true,
		"create serviceaccounts/token garden/default":                                   false,
		"create workloadidentities.security.gardener.cloud/token garden-dev/id":         true,
		"create workloadidentities.security.gardener.cloud garden-dev/id":               false,
		"create workloadidentities.security.gardener.cloud/token garden-dev/unknown":    false,
		"get seeds.core.gardener.cloud a":                                               true,
		"get seeds.core.gardener.cloud b":                                               false,
		"get nodes x":                                                                   false,
		"get gardenlets.seedmanagement.gardener.cloud garden-dev/a":                     false,
		"get configmaps gardener-system-public/gardener-info":                           true,
		"impersonate users x":                                                           false,
		"escalate clusterroles.rbac.authorization.k8s.io x":                             false,
	} {
		if got := ask(t, gardenlet, seeds, request, false); got != want {
			t.Errorf("%s: allowed is %v, want %v", request, got, want)
		}
		if ask(t, "alice", []string{"system:authenticated"}, request, true) {
			t.Errorf("%s: allowed for other users", request)
		}
	}
	for request, gone := range map[string]bool{"delete secrets garden-dev/unknown": true, "delete configmaps garden-dev/unknown": true} {
		if !ask(t, gardenlet, seeds, request, gone) || ask(t, gardenlet, seeds, request, false) {
			t.Errorf("%s: an object that the graph does not know may only be deleted if it does not exist", request)
		}
	}
	account := []string{"system:serviceaccounts:seed-a"}
	for request, want := range map[string]bool{
		"create clusterrolebindings.rbac.authorization.k8s.io -":  false,
		"update leases.coordination.k8s.io seed-a/x":              true,
		"update leases.coordination.k8s.io garden/x":              false,
		"get shoots.core.gardener.cloud garden-dev/one":           true,
		"create serviceaccounts/token seed-a/extension-y":         false,
		"create certificatesigningrequests.certificates.k8s.io -": false,
	} {
		if got := ask(t, "system:serviceaccount:seed-a:extension-x", account, request, false); got != want {
			t.Errorf("extension: %s: allowed is %v, want %v", request, got, want)
		}
	}
}

// TestNothingIsDecidedBeforeTheGraphIsComplete checks that the answer is an HTTP error, and not "no opinion".
func TestNothingIsDecidedBeforeTheGraphIsComplete(t *testing.T) {
	ready := errors.New("not yet")
	handler := NewHandler(Options{Paths: paths(), Ready: func() error { return ready }})
	serve := func() int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathSeed, strings.NewReader(
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"gardener.cloud:system:seed:a","groups":["gardener.cloud:system:seeds"]}}`))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return recorder.Code
	}
	if code := serve(); code != http.StatusServiceUnavailable {
		t.Errorf("got status %d", code)
	}
	ready = nil
	if code := serve(); code != http.StatusOK {
		t.Errorf("got status %d when the graph is complete", code)
	}
}
