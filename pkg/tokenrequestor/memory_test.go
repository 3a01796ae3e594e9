package tokenrequestor

import (
	"encoding/base64"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestExpiry_BeforeFirstRenewal checks that an expired token counts as expired even if this process has never renewed it, and
// cannot renew it.
func TestExpiry_BeforeFirstRenewal(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(`{"iat":1000000000,"exp":1000003600}`)) + ".x"
	source := &corev1.Secret{Data: map[string][]byte{"token": []byte(token)}}
	source.Annotations = map[string]string{
		resourcesv1alpha1.AnnotationServiceAccountName: "web", resourcesv1alpha1.AnnotationServiceAccountNamespace: "shop",
	}
	p := &pass{Reconciler: &Reconciler{}, name: types.NamespacedName{Namespace: "garden", Name: "web"}, source: source}
	if err := p.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.memories.update(p.name, func(m *memory) { m.seen, m.failing = true, true }) // the request of a token failed
	expires := time.Unix(1000003600, 0)
	for state, now := range map[string]time.Time{stateFailing: expires.Add(-time.Second), stateExpired: expires} {
		if count := p.memories.count(state, now); count != 1 {
			t.Errorf("at %s, %d are %s", now, count, state)
		}
	}
}
