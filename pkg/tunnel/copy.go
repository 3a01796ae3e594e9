package tunnel

import (
	"io"
	"sync"
)

// copyBuffer is the size of the buffer of one direction of a connection in bytes.
const copyBuffer = 32 << 10

var buffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// plainWriter hides other methods of a writer from [io.Copy], so that it uses the buffer.
type plainWriter struct{ io.Writer }

// plainReader does so for a reader.
type plainReader struct{ io.Reader }

// stream copies until the end of from, or until an error.
func stream(to io.Writer, from io.Reader) error {
	buffer, _ := buffers.Get().(*[copyBuffer]byte)
	defer buffers.Put(buffer)
	_, err := io.CopyBuffer(plainWriter{to}, plainReader{from}, buffer[:])
	return err
}
