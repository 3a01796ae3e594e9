package osc

import (
	"encoding/base64"
	"fmt"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// Inline returns the content of a file that the OperatingSystemConfig has itself.
func Inline(inline *extensionsv1alpha1.FileContentInline) ([]byte, error) {
	switch inline.Encoding {
	case "":
		return []byte(inline.Data), nil
	case "b64":
		content, err := base64.StdEncoding.DecodeString(inline.Data)
		if err != nil {
			return nil, fmt.Errorf("content.inline.data is not base64: %w", err)
		}
		return content, nil
	}
	return nil, fmt.Errorf(`content.inline.encoding is %q: it must be empty or b64`, inline.Encoding)
}
