package gardenversion

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		own string
		// info is the content of the ConfigMap. It is empty if the ConfigMap does not exist.
		info string
		skew bool
		err  string
	}{
		"the same":                    {own: "v1.150.0", info: "version: v1.150.0"},
		"two minor versions older":    {own: "v1.148.3", info: "version: v1.150.0"},
		"three minor versions older":  {own: "v1.147.9", info: "version: v1.150.0", skew: true, err: "update the gardenlet"},
		"a newer minor version":       {own: "v1.151.0", info: "version: v1.150.9", skew: true, err: "update the garden first"},
		"a newer patch":               {own: "v1.150.1", info: "version: v1.150.0", skew: true, err: "update the garden first"},
		"another major version":       {own: "v0.150.0", info: "version: v1.150.0", skew: true},
		"a development build":         {own: "dev", info: "version: v1.150.0"},
		"a garden that does not say":  {own: "v1.150.0"},
		"a garden that says nonsense": {own: "v1.150.0", info: "version: new", err: `the version "new" of the garden`},
		"no YAML":                     {own: "v1.150.0", info: "{", err: "gardenerAPIServer"},
		"a pre-release of the same":   {own: "v1.150.0-dev", info: "version: v1.150.0-dev"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if test.info != "" {
				objects = append(objects, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "gardener-system-public", Name: "gardener-info"},
					Data:       map[string]string{"gardenerAPIServer": test.info},
				})
			}
			err := Check(t.Context(), fake.NewClientBuilder().WithObjects(objects...).Build(), test.own)
			if (err != nil) != (test.skew || test.err != "") || errors.Is(err, ErrSkew) != test.skew || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v", err)
			}
		})
	}
}
