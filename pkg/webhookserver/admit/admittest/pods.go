package admittest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Pods returns a handler under test for Pods.
func Pods(handler admission.Handler, erase func(*corev1.Pod)) Handler[*corev1.Pod] {
	return Handler[*corev1.Pod]{
		Handler: handler, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		New: func() *corev1.Pod { return &corev1.Pod{} }, Erase: erase,
	}
}
