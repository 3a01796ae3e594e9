package kit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewNamespace creates a namespace with a unique name and labels, and returns its name.
func NewNamespace(tb testing.TB, c client.Client, prefix string, labels map[string]string) string {
	tb.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-", Labels: labels}}
	Must(tb, c.Create(tb.Context(), namespace))
	return namespace.Name
}
