package snapshot

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/lzw"
	"compress/zlib"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// ErrCorrupt means that an object in the store is incomplete or was changed.
var ErrCorrupt = errors.New("the backup is damaged")

const (
	// magic is the first line of each snapshot.
	magic = "etcd backup v1\n"
	// maxHeader limits the size of a header in bytes.
	maxHeader = 64 << 10
)

// Header describes a snapshot. It is the second line of the object, in JSON.
type Header struct {
	Kind  Kind `json:"kind"`
	Epoch int  `json:"epoch"`
	// Cluster is the identifier of the etcd cluster.
	Cluster string    `json:"cluster"`
	First   int64     `json:"firstRevision"`
	Last    int64     `json:"lastRevision"`
	Created time.Time `json:"created"`
	// Compression of the body: none, gzip, zlib or lzw.
	Compression string `json:"compression"`
	// EtcdVersion is the version of the etcd from which a full snapshot was read.
	EtcdVersion string `json:"etcdVersion,omitempty"`
}

// The names of compressions.
const (
	CompressionNone = "none"
	CompressionGzip = "gzip"
	CompressionZlib = "zlib"
	CompressionLZW  = "lzw"
)

type nopWriteCloser struct{ io.Writer }

// Close does nothing.
func (nopWriteCloser) Close() error { return nil }

func compressor(w io.Writer, name string) (io.WriteCloser, error) {
	switch name {
	case CompressionNone:
		return nopWriteCloser{w}, nil
	case CompressionGzip:
		return gzip.NewWriterLevel(w, gzip.BestSpeed)
	case CompressionZlib:
		return zlib.NewWriterLevel(w, zlib.BestSpeed)
	case CompressionLZW:
		return lzw.NewWriter(w, lzw.MSB, 8), nil
	}
	return nil, fmt.Errorf("the compression %q is not supported", name)
}

func decompressor(r io.Reader, name string) (io.ReadCloser, error) {
	switch name {
	case CompressionNone:
		return io.NopCloser(r), nil
	case CompressionGzip:
		return gzip.NewReader(r)
	case CompressionZlib:
		return zlib.NewReader(r)
	case CompressionLZW:
		return lzw.NewReader(r, lzw.MSB, 8), nil
	}
	return nil, fmt.Errorf("the compression %q is not supported by this version", name)
}

// encode writes a snapshot: the header, the compressed body, and the SHA-256 of both.
func encode(to io.Writer, header Header, body func(io.Writer) error) error {
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(to, sum), 256<<10)
	if _, err := w.WriteString(magic + string(text) + "\n"); err != nil {
		return err
	}
	compressed, err := compressor(w, header.Compression)
	if err != nil {
		return err
	}
	if err := body(compressed); err != nil {
		return err
	}
	if err := errors.Join(compressed.Close(), w.Flush()); err != nil {
		return err
	}
	_, err = to.Write(sum.Sum(nil))
	return err
}

// decode reads a snapshot and calls body with its header and its content. It returns ErrCorrupt unless the object is complete
// and unchanged, so the caller must not use what body has read before decode returns.
func decode(from io.Reader, body func(Header, io.Reader) error) error {
	checked := &checkedReader{from: from, sum: sha256.New()}
	r := bufio.NewReaderSize(checked, 256<<10)
	header, err := readHeader(r)
	if err == nil {
		err = decodeBody(r, header, body)
	}
	// The checksum decides: an error of the decompressor may be caused by a damaged object.
	if _, drained := io.Copy(io.Discard, r); drained != nil {
		return drained // the error before it is a consequence
	}
	if !checked.valid() {
		return fmt.Errorf("%w: its checksum does not match", ErrCorrupt)
	}
	return err
}

func decodeBody(r io.Reader, header Header, body func(Header, io.Reader) error) error {
	content, err := decompressor(r, header.Compression)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return body(header, content)
}

func readHeader(r *bufio.Reader) (Header, error) {
	var header Header
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(r, begin); err != nil || string(begin) != magic {
		return header, fmt.Errorf("%w: it does not begin with %q", errors.Join(ErrCorrupt, err), magic[:len(magic)-1])
	}
	var line bytes.Buffer
	for line.Len() < maxHeader {
		next, err := r.ReadByte()
		if err != nil {
			return header, fmt.Errorf("%w: its header is incomplete", errors.Join(ErrCorrupt, err))
		}
		if next == '\n' {
			if err := json.Unmarshal(line.Bytes(), &header); err != nil {
				return header, fmt.Errorf("%w: its header is not valid: %w", ErrCorrupt, err)
			}
			return header, nil
		}
		line.WriteByte(next)
	}
	return header, fmt.Errorf("%w: its header is too long", ErrCorrupt)
}

// checkedReader holds back the last bytes of a stream, which are the checksum of the others.
type checkedReader struct {
	from io.Reader
	sum  hash.Hash
	held []byte
	end  error
}

func (c *checkedReader) Read(into []byte) (int, error) {
	for len(c.held) <= sha256.Size && c.end == nil {
		chunk := make([]byte, 32<<10)
		n, err := c.from.Read(chunk)
		c.held = append(c.held, chunk[:n]...)
		c.end = err
	}
	n := copy(into, c.held[:max(0, len(c.held)-sha256.Size)])
	c.sum.Write(into[:n])
	c.held = c.held[n:]
	if n == 0 && len(into) > 0 {
		return 0, c.end
	}
	return n, nil
}

// valid reports whether the whole stream was read and has the right checksum.
func (c *checkedReader) valid() bool {
	return errors.Is(c.end, io.EOF) && bytes.Equal(c.held, c.sum.Sum(nil))
}
