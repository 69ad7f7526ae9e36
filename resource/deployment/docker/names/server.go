package names

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// askTimeout is how long the next server may take to answer, and a client of a connection to ask.
	askTimeout = 5 * time.Second
	// maxUDP is the most that a packet has, and maxAddresses the most addresses that go into the packet that every client takes.
	maxUDP       = 65535
	maxAddresses = 20
)

// Server answers for names.
type Server struct {
	// File has the records. Default: File.
	File string
	// Next is the address of the server that everything else is asked of. Default: port 53 of the first one in /etc/resolv.conf.
	Next string

	records file
}

// Run answers at port 53, for packets and connections, until the context ends.
func Run(ctx context.Context) error {
	packets, err := net.ListenPacket("udp", ":53")
	if err != nil {
		return err
	}
	connections, err := net.Listen("tcp", ":53")
	if err != nil {
		return errors.Join(err, packets.Close())
	}
	return (&Server{}).Serve(ctx, packets, connections)
}

// Serve answers until the context ends, and closes what it is given.
func (s *Server) Serve(ctx context.Context, packets net.PacketConn, connections net.Listener) error {
	s.records.path = s.File
	if s.File == "" {
		s.records.path = File
	}
	if s.Next == "" {
		next, err := resolver("/etc/resolv.conf")
		if err != nil {
			return errors.Join(err, packets.Close(), connections.Close())
		}
		s.Next = next
	}
	serving, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(serving, func() { _, _ = packets.Close(), connections.Close() })()
	var work sync.WaitGroup
	work.Go(func() { cancel(s.servePackets(packets, &work)) })
	work.Go(func() { cancel(s.serveConnections(connections, &work)) })
	work.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(serving)
}

// resolver returns the first name server of a file in the format of resolv.conf(5).
func resolver(path string) (string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // it is that of the container
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "nameserver" {
			return net.JoinHostPort(fields[1], "53"), nil
		}
	}
	return "", fmt.Errorf("there is no name server in %s", path)
}

func (s *Server) servePackets(packets net.PacketConn, work *sync.WaitGroup) error {
	buffer := make([]byte, maxUDP)
	for {
		n, from, err := packets.ReadFrom(buffer)
		if err != nil {
			return err
		}
		question := slices.Clone(buffer[:n])
		work.Go(func() {
			// Who gets no answer asks again.
			if answer, err := s.answer(question, s.askByPacket); err == nil {
				_, _ = packets.WriteTo(answer, from)
			}
		})
	}
}

func (s *Server) serveConnections(connections net.Listener, work *sync.WaitGroup) error {
	for {
		conn, err := connections.Accept()
		if err != nil {
			return err
		}
		work.Go(func() {
			defer func() { _ = conn.Close() }()
			for {
				_ = conn.SetDeadline(time.Now().Add(askTimeout))
				question, err := readMessage(conn)
				if err != nil {
					return
				}
				answer, err := s.answer(question, s.askByConnection)
				if err != nil || writeMessage(conn, answer) != nil {
					return
				}
			}
		})
	}
}

// answer answers a question, or asks it of the next server.
func (s *Server) answer(question []byte, ask func([]byte) ([]byte, error)) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(question)
	if err != nil {
		return nil, err
	}
	asked, err := parser.Question()
	if err != nil {
		return nil, err
	}
	addresses, ours := s.records.read()[strings.ToLower(strings.TrimSuffix(asked.Name.String(), "."))]
	if !ours || asked.Class != dnsmessage.ClassINET {
		return ask(question)
	}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
	})
	b.EnableCompression()
	if err := errors.Join(b.StartQuestions(), b.Question(asked), b.StartAnswers()); err != nil {
		return nil, err
	}
	addresses = slices.Clone(addresses)
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	for _, a := range addresses[:min(maxAddresses, len(addresses))] {
		if err := add(&b, asked, a); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// add adds an address, if it is of the kind that was asked for.
func add(b *dnsmessage.Builder, asked dnsmessage.Question, a netip.Addr) error {
	header := dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET}
	switch {
	case a.Is4() && asked.Type == dnsmessage.TypeA:
		return b.AResource(header, dnsmessage.AResource{A: a.As4()})
	case a.Is6() && asked.Type == dnsmessage.TypeAAAA:
		return b.AAAAResource(header, dnsmessage.AAAAResource{AAAA: a.As16()})
	}
	return nil
}

func (s *Server) askByPacket(question []byte) ([]byte, error) {
	conn, err := s.dial("udp")
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(question); err != nil {
		return nil, err
	}
	answer := make([]byte, maxUDP)
	n, err := conn.Read(answer)
	return answer[:n], err
}

func (s *Server) askByConnection(question []byte) ([]byte, error) {
	conn, err := s.dial("tcp")
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := writeMessage(conn, question); err != nil {
		return nil, err
	}
	return readMessage(conn)
}

func (s *Server) dial(network string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, s.Next, askTimeout)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(askTimeout))
	}
	return conn, err
}

// readMessage reads a message from a connection, where its length comes before (RFC 1035, 4.2.2).
func readMessage(r io.Reader) ([]byte, error) {
	var length uint16
	if err := binary.Read(r, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	message := make([]byte, length)
	_, err := io.ReadFull(r, message)
	return message, err
}

func writeMessage(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)) //nolint:gosec // no message is longer
	return err
}
