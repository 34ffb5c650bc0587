// Images, of which the stand-in has none. One whose name contains "missing"
// cannot be pulled. All others are this machine's root folder, unless the file
// of images says more.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// image is one entry of the file of images, whose keys are their names. All is optional.
type image struct {
	Root       string            `json:"root"`       // folder of the unpacked image, instead of "/"
	Mounts     map[string]string `json:"mounts"`     // place in the container -> folder of this machine, read-only
	Env        map[string]string `json:"env"`        // PATH, and others
	Entrypoint []string          `json:"entrypoint"` // before the arguments of a container that has no command
	User       *int64            `json:"user"`       // and group, unless the pod says another
}

// imageOf reads the file anew for each container, so that tests may write it later.
func (s *standin) imageOf(name string) (image, error) {
	one := image{Root: "/"}
	text, err := os.ReadFile(s.images)
	if err != nil {
		return one, nil
	}
	var all map[string]image
	if err := json.Unmarshal(text, &all); err != nil {
		return one, fmt.Errorf("%s: %w", s.images, err)
	}
	if found, ok := all[name]; ok {
		if one = found; one.Root == "" {
			one.Root = "/"
		}
	}
	return one, nil
}

// inside resolves the links of a path in the image, so that it can be mounted from outside.
func (m *image) inside(path string) (string, error) {
	whole, err := securejoin.SecureJoin(m.Root, path)
	return "/" + strings.TrimPrefix(strings.TrimPrefix(whole, m.Root), "/"), err
}

// otherMounts are the file systems that a container on "/" sees as they are:
// an overlay does not show what is mounted below its folder.
func otherMounts(except string) (paths []string) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 5 || words[4] == "/" || strings.Contains(words[4], "\\") {
			continue
		}
		skip := false
		for _, own := range []string{"/proc", "/sys", "/dev", "/run", except} {
			skip = skip || words[4] == own || strings.HasPrefix(words[4], own+"/")
		}
		if info, err := os.Stat(words[4]); !skip && err == nil && info.IsDir() {
			paths = append(paths, words[4])
		}
	}
	return paths
}
