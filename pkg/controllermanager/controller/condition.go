package controller

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// WriteSeedCondition writes only one condition of a Seed, so that those of other writers remain unchanged. A Seed that does not
// exist is not an error.
func WriteSeedCondition(ctx context.Context, garden client.Client, seed string, condition corev1beta1.Condition) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1beta1.Condition{condition}}})
	if err != nil {
		return fmt.Errorf("encode the condition of Seed %s: %w", seed, err)
	}
	target := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seed}}
	err = garden.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch), FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the condition %s of Seed %s: %w", condition.Type, seed, err)
	}
	return nil
}
