package forward

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// bufferSize is the size of a buffer in bytes.
	bufferSize = 32 << 10
	// halfClosed is how long one side may be silent after the other one has ended its direction.
	halfClosed = time.Minute
)

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// session is a connection of a client, joined to one of a destination.
type session struct {
	name           string
	client, target *net.TCPConn
	// last is when something was received, in nanoseconds of the Unix time. half is set once one direction has ended.
	last atomic.Int64
	half atomic.Bool
}

// begin sends what is sent before both sides are joined.
func (s *session) begin(destination Destination) error {
	if _, err := s.client.Write(destination.Answer); err != nil {
		return err
	}
	if err := s.target.SetWriteDeadline(time.Now().Add(openTimeout)); err != nil {
		return err
	}
	if _, err := s.target.Write(destination.Received); err != nil {
		return err
	}
	s.touch()
	return errors.Join(s.client.SetDeadline(time.Time{}), s.target.SetWriteDeadline(time.Time{}))
}

// run joins both sides until both directions have ended. It returns how many bytes the client has sent and received.
func (s *session) run() (sent, received int64) {
	defer s.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		sent = s.direction(s.target, s.client)
	}()
	received = s.direction(s.client, s.target)
	<-done
	return sent, received
}

// direction copies one direction. After its end, the other one may go on for a while; after an error, both end.
func (s *session) direction(to, from *net.TCPConn) (count int64) {
	count, err := s.copy(to, from)
	if err != nil {
		s.close()
		return count
	}
	s.half.Store(true)
	if errors.Join(to.CloseWrite(), to.SetReadDeadline(time.Now().Add(halfClosed))) != nil {
		s.close()
	}
	return count
}

// copy copies until the end of from. A connection that is silent uses no buffer.
func (s *session) copy(to, from *net.TCPConn) (count int64, err error) {
	raw, err := from.SyscallConn()
	if err != nil {
		return 0, err
	}
	for {
		buffer, length, err := receive(raw)
		if err != nil {
			return count, err
		}
		if length == 0 {
			buffers.Put(buffer)
			return count, nil
		}
		s.touch()
		_, err = to.Write(buffer[:length])
		buffers.Put(buffer)
		if err != nil {
			return count, err
		}
		count += int64(length)
		if s.half.Load() {
			if err := from.SetReadDeadline(time.Now().Add(halfClosed)); err != nil {
				return count, err
			}
		}
	}
}

// receive waits until something can be received, and only then takes a buffer. A length of 0 is the end. After an error, there is no buffer.
func receive(raw syscall.RawConn) (buffer *[bufferSize]byte, length int, err error) {
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		buffer, _ = buffers.Get().(*[bufferSize]byte)
		for {
			length, failed = syscall.Read(int(fd), buffer[:])
			if !errors.Is(failed, syscall.EINTR) {
				break
			}
		}
		if errors.Is(failed, syscall.EAGAIN) {
			buffers.Put(buffer)
			buffer = nil
			return false
		}
		return true
	})
	if err = errors.Join(err, os.NewSyscallError("read", failed)); err != nil {
		if buffer != nil {
			buffers.Put(buffer)
		}
		return nil, 0, err
	}
	return buffer, max(length, 0), nil
}

func (s *session) touch() { s.last.Store(time.Now().UnixNano()) }

// quiet reports whether nothing was received for a time.
func (s *session) quiet(now time.Time, since time.Duration) bool {
	return now.UnixNano()-s.last.Load() >= since.Nanoseconds()
}

func (s *session) close() {
	_ = s.client.Close()
	_ = s.target.Close()
}
