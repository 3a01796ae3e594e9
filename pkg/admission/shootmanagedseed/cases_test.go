package shootmanagedseed

import (
	"testing"

	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
)

func TestCases(t *testing.T) {
	t.Parallel()
	admissiontest.Run(t, Plugin)
}
