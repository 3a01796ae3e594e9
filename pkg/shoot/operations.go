package shoot

import (
	"context"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// operate starts and completes the rotations for which the Shoot is annotated. It removes the annotation once the status
// contains the request.
func (p *pass) operate(ctx context.Context) error {
	r, shoot := p.reconciler, p.shoot
	if shoot.DeletionTimestamp != nil || shoot.Status.LastOperation == nil || p.decision.stopped {
		return nil
	}
	status := *shoot.Status.DeepCopy()
	var left []string
	status.Credentials, left = operated(shoot, r.options.Clock.Now())
	if err := r.write(ctx, shoot, status); err != nil {
		return err
	}
	value, asked := shoot.Annotations[constants.AnnotationGardenerOperation]
	if rest := strings.Join(left, ";"); !asked || rest == value {
		return nil
	} else if rest != "" {
		return r.patch(ctx, shoot, func() { shoot.Annotations[constants.AnnotationGardenerOperation] = rest })
	}
	return r.patch(ctx, shoot, func() { delete(shoot.Annotations, constants.AnnotationGardenerOperation) })
}
