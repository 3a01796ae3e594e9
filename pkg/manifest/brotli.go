package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
)

// compressedSuffix marks a data key whose value is compressed with Brotli.
const compressedSuffix = ".br"

// plain returns the decompressed value of a key and deducts its size from the limit of the Secret. A key that cannot be
// read does not reduce the limit for the others, but too many unreadable bytes make the decoder skip further compressed
// keys.
func (d *decoder) plain(key string, value []byte) ([]byte, error) {
	if strings.HasSuffix(key, compressedSuffix) {
		if d.wasted > 2*d.limits.Bytes {
			return nil, errors.New("it is skipped, because too much of this secret could not be read")
		}
		var err error
		value, err = io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(value)), d.bytesLeft+1))
		if err != nil {
			d.wasted += int64(len(value))
			return nil, fmt.Errorf("decompress with brotli: %w (the value is truncated or not brotli)", err)
		}
	}
	if int64(len(value)) > d.bytesLeft {
		d.wasted += int64(len(value))
		return nil, fmt.Errorf("the manifests in this secret exceed %d bytes when decompressed; "+
			"split them or raise controllers.managedResource.maxSecretSize", d.limits.Bytes)
	}
	d.bytesLeft -= int64(len(value))
	return value, nil
}
