package names_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment/docker/names"
)

// start starts a server with records, and returns its address and the file.
func start(t *testing.T, text, next string) (address, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "names.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	packets, connections := listen(t)
	address = packets.LocalAddr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&names.Server{File: file, Next: next}).Serve(ctx, packets, connections) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return address, file
}

// listen takes a port for packets and for connections. One that is free for the one may be taken for the other.
func listen(t *testing.T) (packets net.PacketConn, connections net.Listener) {
	t.Helper()
	for range 100 {
		connections, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if packets, err = net.ListenPacket("udp", connections.Addr().String()); err == nil {
			return packets, connections
		}
		connections.Close()
	}
	t.Fatal("no port is free for both")
	return nil, nil
}

// lookUp asks a server for the addresses of a name.
func lookUp(t *testing.T, network, address, name string) []netip.Addr {
	t.Helper()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	found, err := resolver.LookupNetIP(t.Context(), "ip", name+".")
	if err != nil {
		if failure, ok := err.(*net.DNSError); !ok || !failure.IsNotFound { //nolint:errorlint // it is what resolvers return
			t.Errorf("look up %s by %s: %v", name, network, err)
		}
		return nil
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	return found
}

func TestNamesHaveTheAddressesOfTheFileAndAllElseIsAskedOfTheNextServer(t *testing.T) {
	next, _ := start(t, `{"elsewhere.example":["10.0.0.9"]}`, "127.0.0.1:1")
	address, file := start(t, `{"web":["10.0.0.1","10.0.0.2","fd00::1"],"none":[]}`, next)
	addresses := func(texts ...string) (out []netip.Addr) {
		for _, text := range texts {
			out = append(out, netip.MustParseAddr(text))
		}
		return out
	}
	for _, network := range []string{"udp", "tcp"} {
		for name, want := range map[string][]netip.Addr{
			"web": addresses("10.0.0.1", "10.0.0.2", "fd00::1"), "WEB": addresses("10.0.0.1", "10.0.0.2", "fd00::1"),
			"none": nil, "elsewhere.example": addresses("10.0.0.9"),
		} {
			if got := lookUp(t, network, address, name); !slices.Equal(got, want) {
				t.Errorf("%s by %s = %v, want %v", name, network, got, want)
			}
		}
	}
	for text, want := range map[string][]netip.Addr{`{"web":["10.0.0.3"]}`: addresses("10.0.0.3"), `{"web":["10.0`: addresses("10.0.0.3")} {
		if text[len(text)-1] != '}' {
			// Half of a file, after a whole one.
			if err := os.WriteFile(file, []byte(`{"web":["10.0.0.3"]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			lookUp(t, "udp", address, "web")
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lookUp(t, "udp", address, "web"); !slices.Equal(got, want) {
			t.Errorf("after %s: %v, want %v", text, got, want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := lookUp(t, "udp", address, "web"); !slices.Equal(got, addresses("10.0.0.3")) {
		t.Errorf("without the file: %v", got)
	}
}

func TestAnAnswerFitsIntoThePacketThatEveryClientTakes(t *testing.T) {
	many := names.Records{"web": nil}
	for i := range 200 {
		many["web"] = append(many["web"], netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}))
	}
	text, err := many.Encode()
	if err != nil {
		t.Fatal(err)
	}
	address, _ := start(t, string(text), "127.0.0.1:1")
	first, second := lookUp(t, "udp", address, "web"), lookUp(t, "udp", address, "web")
	if len(first) == 0 || len(first) != len(second) || slices.Equal(first, second) {
		t.Errorf("asked twice it says %v and %v, want as many, and others", first, second)
	}
}
