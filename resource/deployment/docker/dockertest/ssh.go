package dockertest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// SSHUser is the only user whom an SSHServer lets in.
const SSHUser = "deploy"

// SSHServer lets a user with a key to sockets, as OpenSSH's server does with "direct-streamlocal@openssh.com".
type SSHServer struct {
	listener net.Listener
	config   *ssh.ServerConfig
	host     ssh.PublicKey
	userKey  api.Hidden

	mu      sync.Mutex
	open    []net.Conn
	serving sync.WaitGroup
}

// StartSSH starts a server with a key of its own, and one for its user. It ends with the test.
func StartSSH(t testing.TB) *SSHServer {
	t.Helper()
	s, err := newSSHServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	s.serving.Go(s.accept)
	return s
}

func newSSHServer() (*SSHServer, error) {
	host, _, err := newSSHKey()
	if err != nil {
		return nil, err
	}
	user, key, err := newSSHKey()
	if err != nil {
		return nil, err
	}
	s := &SSHServer{host: host.PublicKey(), userKey: key, config: &ssh.ServerConfig{
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if meta.User() != SSHUser || string(key.Marshal()) != string(user.PublicKey().Marshal()) {
				return nil, errors.New("not known")
			}
			return &ssh.Permissions{}, nil
		},
	}}
	s.config.AddHostKey(host)
	s.listener, err = net.Listen("tcp", "127.0.0.1:0")
	return s, err
}

// newSSHKey returns a key, and what it is written as.
func newSSHKey() (ssh.Signer, api.Hidden, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, "", err
	}
	return signer, api.Hidden(pem.EncodeToMemory(block)), nil
}

// Address returns where the server listens, as host:port.
func (s *SSHServer) Address() string { return s.listener.Addr().String() }

// Host returns how a user reaches an engine through the server, as in docker.Endpoint.
func (s *SSHServer) Host(user string, e *Engine) string {
	return fmt.Sprintf("ssh://%s@%s%s", user, s.Address(), e.Socket())
}

// UserKey returns the key of the user, in OpenSSH's format.
func (s *SSHServer) UserKey() api.Hidden { return s.userKey }

// KnownHosts returns a line of the file known_hosts that has the key of the server, for the address of this or another one.
func (s *SSHServer) KnownHosts(address string) []byte {
	return []byte(knownhosts.Line([]string{knownhosts.HashHostname(knownhosts.Normalize(address))}, s.host) + "\n")
}

// Cut ends all connections.
func (s *SSHServer) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.open {
		_ = conn.Close()
	}
	s.open = nil
}

func (s *SSHServer) close() {
	_ = s.listener.Close()
	s.Cut()
	s.serving.Wait()
}

func (s *SSHServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open = append(s.open, conn)
		s.mu.Unlock()
		s.serving.Go(func() { s.serve(conn) })
	}
}

func (s *SSHServer) serve(raw net.Conn) {
	defer func() { _ = raw.Close() }()
	_, channels, requests, err := ssh.NewServerConn(raw, s.config)
	if err != nil {
		return
	}
	s.serving.Go(func() { ssh.DiscardRequests(requests) })
	for c := range channels {
		var forward struct {
			Path     string
			Reserved string
			Unused   uint32
		}
		if c.ChannelType() != "direct-streamlocal@openssh.com" || ssh.Unmarshal(c.ExtraData(), &forward) != nil {
			_ = c.Reject(ssh.UnknownChannelType, c.ChannelType())
			continue
		}
		s.serving.Go(func() { s.forward(c, forward.Path) })
	}
}

func (s *SSHServer) forward(c ssh.NewChannel, path string) {
	socket, err := net.Dial("unix", path)
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	channel, requests, err := c.Accept()
	if err != nil {
		_ = socket.Close()
		return
	}
	s.serving.Go(func() { ssh.DiscardRequests(requests) })
	s.serving.Go(func() {
		_, _ = io.Copy(socket, channel)
		_ = socket.Close()
	})
	_, _ = io.Copy(channel, socket)
	_, _ = channel.Close(), socket.Close()
}
