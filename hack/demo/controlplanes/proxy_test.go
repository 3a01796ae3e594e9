package controlplanes

import (
	"errors"
	"slices"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
)

func TestFind(t *testing.T) {
	r := &Runner{options: Options{Domain: "internal.example.org"}, ports: map[string]int{"shoot--dev--one": 4711}}
	for host, want := range map[string]string{
		"kube-apiserver.shoot--dev--one.svc":                   "127.0.0.1:4711",
		"kube-apiserver.shoot--dev--one.svc.cluster.local":     "127.0.0.1:4711",
		"api.one.dev.internal.example.org":                     "127.0.0.1:4711",
		"kube-apiserver.shoot--dev--two.svc":                   "",
		"api.two.dev.internal.example.org":                     "",
		"api.one.dev.example.org":                              "",
		"kube-apiserver.shoot--dev--one.svc.example.org":       "",
		"other.kube-apiserver.shoot--dev--one.svc":             "",
		"gardener-resource-manager.shoot--dev--one.svc":        "",
		"kube-apiserver.shoot--dev--one.svc.cluster.local.org": "",
	} {
		_, addresses, err := r.find(t.Context(), host)
		if want == "" && !errors.Is(err, forward.ErrNoRoute) || want != "" && (err != nil || !slices.Equal(addresses, []string{want})) {
			t.Errorf("%s: %v, %v, want %q", host, addresses, err, want)
		}
	}
}
