package cleanup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// StageVolumes is the stage after those of [Stages] in a cluster with nodes: volumes that belong to deleted claims are removed from the
// infrastructure. It deletes nothing, because the controllers of the cluster do, which must run until then.
const StageVolumes = "clean-up-volumes"

// volumeTime is how long the clean-up waits for volumes, starting at its beginning. After that, the volumes stay at the infrastructure.
const volumeTime = time.Hour

// VolumeStage returns this stage.
func VolumeStage() Stage { return Stage{Name: StageVolumes, NeedsControllers: true} }

// volumes describes the volumes that controllers of the cluster still have to delete. It is empty if there are none, or if the time is over.
func (c Cleaner) volumes(ctx context.Context) (string, error) {
	if !c.Now.Before(c.Began.Add(volumeTime)) {
		return "", nil
	}
	var left []string
	list := &corev1.PersistentVolumeList{}
	for again := true; again; again = list.Continue != "" {
		err := c.Client.List(ctx, list, client.Limit(pageSize), client.Continue(list.Continue))
		if meta.IsNoMatchError(err) {
			return "", nil // the API server does not serve the kind
		}
		if err != nil {
			return "", fmt.Errorf("list the volumes: %w", err)
		}
		for i := range list.Items {
			if volume := &list.Items[i]; isDeleted(volume) {
				left = append(left, named(volume))
			}
		}
	}
	if len(left) == 0 {
		return "", nil
	}
	slices.Sort(left)
	text := strings.Join(left[:min(len(left), namesShown)], ", ")
	if more := len(left) - namesShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("volumes are being deleted at the infrastructure: %s; after %s, they stay there", text, c.Began.Add(volumeTime).UTC().Format(time.RFC3339)), nil
}

// isDeleted reports whether a controller deletes a volume at the infrastructure once its claim is gone.
func isDeleted(volume *corev1.PersistentVolume) bool {
	return volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && volume.Spec.ClaimRef != nil &&
		volume.Labels[constants.LabelShootNoCleanup] != "true"
}

// named returns the name of a volume with its identifier at the infrastructure.
func named(volume *corev1.PersistentVolume) string {
	if csi := volume.Spec.CSI; csi != nil {
		return volume.Name + " (" + csi.Driver + " " + csi.VolumeHandle + ")"
	}
	return volume.Name
}
