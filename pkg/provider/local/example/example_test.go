package example

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestPlan(t *testing.T) {
	for _, one := range Types() {
		object := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--blue", Name: one}}
		object.Spec.Type = one
		golden.CheckPlan(t, one, Plan(object), nil)
	}
}
