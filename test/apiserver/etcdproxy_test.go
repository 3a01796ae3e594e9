package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/trellis-k8s/trellis/test/kit"
)

// storagePrefix is the prefix of the keys of the garden's objects in etcd.
const storagePrefix = "/registry-gardener/"

// etcdProxy forwards calls to etcd. It can hold the lists of resources, so that the caches of an API server stay empty while it reads and
// writes single objects.
type etcdProxy struct {
	address string
	etcd    *grpc.ClientConn

	mutex sync.Mutex
	// held are the resources whose lists wait until the channel is closed.
	held map[string]chan struct{}
}

// startEtcdProxy serves a proxy in front of etcd until the test ends.
func startEtcdProxy(t *testing.T, etcd *url.URL) *etcdProxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	kit.Must(t, err)
	connection, err := grpc.NewClient(etcd.Host, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	kit.Must(t, err)
	proxy := &etcdProxy{address: "http://" + listener.Addr().String(), etcd: connection, held: map[string]chan struct{}{}}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.MaxRecvMsgSize(math.MaxInt32), grpc.UnknownServiceHandler(proxy.forward))
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(func() {
		server.Stop()
		_ = connection.Close()
	})
	return proxy
}

// hold makes lists of resources wait. Watches of caches that are filled already go on.
func (p *etcdProxy) hold(resources ...string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, resource := range resources {
		if p.held[resource] == nil {
			p.held[resource] = make(chan struct{})
		}
	}
}

// release lets lists of resources pass.
func (p *etcdProxy) release(resources ...string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, resource := range resources {
		if p.held[resource] != nil {
			close(p.held[resource])
			delete(p.held, resource)
		}
	}
}

// gateOf returns the channel that a call waits for; nil if it need not wait. Only calls for several keys wait.
func (p *etcdProxy) gateOf(method string, message []byte) chan struct{} {
	request := &etcdserverpb.RangeRequest{}
	if !slices.Contains([]string{etcdserverpb.KV_Range_FullMethodName, etcdserverpb.KV_RangeStream_FullMethodName}, method) ||
		proto.Unmarshal(message, request) != nil || len(request.RangeEnd) == 0 {
		return nil
	}
	key, _ := strings.CutPrefix(string(request.Key), storagePrefix)
	parts := strings.SplitN(key, "/", 3)
	if len(parts) < 2 {
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.held[parts[1]]
}

// forward handles one call.
func (p *etcdProxy) forward(_ any, incoming grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(incoming)
	ctx, cancel := context.WithCancel(incoming.Context())
	defer cancel()
	if values, found := metadata.FromIncomingContext(ctx); found {
		ctx = metadata.NewOutgoingContext(ctx, values)
	}
	outgoing, err := p.etcd.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		if p.send(ctx, method, incoming, outgoing) != nil {
			cancel()
		}
	}()
	for {
		message := []byte(nil)
		if err := outgoing.RecvMsg(&message); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := incoming.SendMsg(&message); err != nil {
			return err
		}
	}
}

// send forwards the messages of a client.
func (p *etcdProxy) send(ctx context.Context, method string, from grpc.ServerStream, to grpc.ClientStream) error {
	for {
		message := []byte(nil)
		if err := from.RecvMsg(&message); errors.Is(err, io.EOF) {
			return to.CloseSend()
		} else if err != nil {
			return err
		}
		if gate := p.gateOf(method, message); gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := to.SendMsg(&message); err != nil {
			return err
		}
	}
}

// rawCodec leaves messages as they are.
type rawCodec struct{}

// Marshal implements encoding.Codec.
func (rawCodec) Marshal(value any) ([]byte, error) {
	if message, is := value.(*[]byte); is {
		return *message, nil
	}
	return nil, fmt.Errorf("encode a %T", value)
}

// Unmarshal implements encoding.Codec.
func (rawCodec) Unmarshal(data []byte, value any) error {
	message, is := value.(*[]byte)
	if !is {
		return fmt.Errorf("decode into a %T", value)
	}
	*message = slices.Clone(data)
	return nil
}

// Name implements encoding.Codec.
func (rawCodec) Name() string { return "proto" }
